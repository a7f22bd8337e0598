"""Layouts by axes against chips that know elements alone: who holds what, who needs what, what has to move."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.check.decided_design import changes_by_axes
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.inter_chip.shares import (
    Layout,
    conversion,
    exchanged_statistics,
    given_layout,
    layer_edges,
    needs_by_axes,
)
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.options import DesignOptions, ShardingObjective
from dfcompile.dfmodel_backend.sharding.designs import allowed_dims
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel, Dim
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.designs import TEMPLATE

CHIPS = 2
Index = dict[str, int]  # of an iteration: o, m, k, n
Element = tuple[int, int]  # row and column of a matrix
Access = Callable[[Index, Index], Element]  # of an iteration, and the extents

# How kernels may read a matrix: what each iteration touches.
READS: dict[str, tuple[KernelVariant, Access]] = {
    "elementwise": (KernelVariant.ELEMENTWISE_INPUT1, lambda i, e: (i["o"] * e["m"] + i["m"], i["n"])),
    "transposed": (KernelVariant.ELEMENTWISE_INPUT1, lambda i, e: (i["n"], i["o"] * e["m"] + i["m"])),
    "a row for all": (KernelVariant.ELEMENTWISE_INPUT1_INPUT2, lambda i, _: (0, i["n"])),
    "a column for all": (KernelVariant.ELEMENTWISE_INPUT1_INPUT2, lambda i, e: (i["o"] * e["m"] + i["m"], 0)),
    "B": (KernelVariant.GEMM_INPUT1_WEIGHT, lambda i, e: (i["o"] * e["k"] + i["k"], i["n"])),
    "B of all products": (KernelVariant.GEMM_INPUT1_WEIGHT, lambda i, _: (i["k"], i["n"])),
    "B transposed": (KernelVariant.GEMM_INPUT1_INPUT2, lambda i, e: (i["o"] * e["n"] + i["n"], i["k"])),
    "A": (KernelVariant.GEMM_INPUT1_INPUT2, lambda i, e: (i["o"] * e["m"] + i["m"], i["k"])),
    "A transposed": (KernelVariant.GEMM_INPUT1_INPUT2, lambda i, e: (i["o"] * e["k"] + i["k"], i["m"])),
}


def kernel(number: int, variant: KernelVariant, extents: Index) -> DesignKernel:
    outer, m, k, n = extents["o"], extents["m"], extents["k"], extents["n"]
    return replace(
        TEMPLATE.kernels[0], name=f"k{number}", id=number, variant=variant, systolic=variant.is_gemm,
        outer=outer, m=m, k=k if variant.is_gemm else 1, n=n, output_bytes=2.0 * outer * m * n, tiling=Dim.NONE,
        input_1_bytes=0.0, input_2_bytes=0.0,
    )  # fmt: skip


def part_of(index: Index, extents: Index, dim: Dim) -> int | None:
    """Return the chip that runs an iteration, None if all do."""
    if dim is Dim.NONE:
        return None
    letter = {"O": "o", "M": "m", "K": "k", "N": "n"}[dim.value]
    return index[letter] * CHIPS // extents[letter]


def needed_elements(extents: Index, dim: Dim, access: Access) -> list[set[Element]]:
    needed: list[set[Element]] = [set() for _ in range(CHIPS)]
    for values in itertools.product(*(range(extents[letter]) for letter in "omkn")):
        index = dict(zip("omkn", values, strict=True))
        part = part_of(index, extents, dim)
        for chip in range(CHIPS) if part is None else (part,):
            needed[chip].add(access(index, extents))
    return needed


def held_elements(layout: Layout, rows: int, columns: int) -> list[set[Element]]:
    def holds(chip: int, row: int, column: int) -> bool:
        return {
            Layout.REPLICATED: True,
            Layout.ROWS: row * CHIPS // rows == chip,
            Layout.COLUMNS: column * CHIPS // columns == chip,
        }[layout]

    every = list(itertools.product(range(rows), range(columns)))
    return [{(row, column) for row, column in every if holds(chip, row, column)} for chip in range(CHIPS)]


@examples(200)
@given(st.data(), st.sampled_from(list(READS)))
def test_no_chip_computes_from_what_it_does_not_hold(data: st.DataObject, how: str) -> None:
    """With distinct extents none is taken for another one; in all layouts chips hold what each iteration reads."""
    variant, access = READS[how]
    first, second, third, fourth = data.draw(st.permutations([2, 6, 10, 14]))
    extents = {
        "o": data.draw(st.sampled_from([1, first])),
        "m": second,
        "k": third if variant.is_gemm else 1,
        "n": fourth,
    }
    touched = set().union(*needed_elements(extents, Dim.NONE, access))
    rows, columns = (1 + max(element[axis] for element in touched) for axis in (0, 1))
    producer = kernel(1, KernelVariant.ELEMENTWISE_INPUT1, {"o": 1, "m": rows, "k": 1, "n": columns})
    consumer = kernel(2, variant, extents)
    (needs,) = needs_by_axes((producer, consumer), (DesignEdge(1, 2, zero_out=False),))

    for dim in allowed_dims(consumer):
        needed = needed_elements(extents, dim, access)
        held = held_elements(needs[dim], rows, columns)
        assert all(mine <= there for mine, there in zip(needed, held, strict=True)), (how, dim)
        if needs[dim] is Layout.REPLICATED and dim is not Dim.NONE:  # nothing less is enough
            parts = [held_elements(layout, rows, columns) for layout in (Layout.ROWS, Layout.COLUMNS)]
            assert not any(
                all(mine <= there for mine, there in zip(needed, part, strict=True)) for part in parts
            ), (how, dim)  # fmt: skip


def test_an_operand_that_all_products_share_is_gathered() -> None:
    """A normalization that is split along its rows leaves each chip an eighth of what the queries are made of."""
    design = read_design(DESIGNS / "llm_175B_fwd_kbk_8x1.txt")
    position = {one.name: number for number, one in enumerate(design.kernels)}
    kinds = {one.name: one.id for one in design.kernels}
    sharding = {kinds["LayerNorm_1"]: Dim.M, kinds["Q"]: Dim.OUTER, kinds["K"]: Dim.OUTER, kinds["V"]: Dim.OUTER}

    right, original = (DesignModel(design, sharding, 1, one) for one in (RIGHT, ORIGINAL))
    changes = [[change for change, _ in edge.exchange] for edge in right.edges if edge.target == position["Q"]]

    assert changes == [[Collective.ALL_GATHER]]
    assert not any(edge.exchange for edge in original.edges if edge.target == position["Q"])
    columns = right.shares[1].work.n
    assert right.shares[1].exchange == ((Collective.ALL_REDUCE, 2.0 * columns * design.execution.word_bytes),)
    assert original.shares[1].exchange == ()


@pytest.mark.parametrize(
    ("name", "tiling", "sharding", "expected"),
    [
        ("LayerNorm_1", Dim.N, Dim.M, 2 * 5),
        ("SOFTMAX_bwd", Dim.N, Dim.M, 2 * 5),
        ("softmax", Dim.M, Dim.N, 2 * 3),
        ("softmax", Dim.N, Dim.OUTER, 0),
        ("LayerNorm_1", Dim.N, Dim.NONE, 0),
        ("Add_1", Dim.N, Dim.M, 0),
    ],
)
def test_chips_that_share_what_reduces_exchange_two_numbers_per_vector(
    name: str, tiling: Dim, sharding: Dim, expected: int
) -> None:
    one = kernel(1, KernelVariant.ELEMENTWISE_INPUT1, {"o": 1, "m": 6, "k": 1, "n": 5})
    one = replace(one, name=name, tiling=tiling)

    assert exchanged_statistics(one, sharding, 3, 5) == expected


def test_what_a_layer_ends_with_is_what_the_next_one_begins_with() -> None:
    design = read_design(DESIGNS / "readme_gpt3_1t_sn30.txt")
    names = {one.id: one.name for one in design.kernels}

    assert [(names[edge.source], names[edge.target]) for edge in layer_edges(design)] == [
        ("Add_2", "Add_Prev_Layer"),
        ("V_bwd", "Loss_bwd"),
        ("Q_bwd", "Loss_bwd"),
        ("K_bwd", "Loss_bwd"),
    ]
    one_layer = replace(design.execution, batch=replace(design.execution.batch, layers=1))
    assert layer_edges(replace(design, execution=one_layer)) == ()


@examples(50)
@given(st.data())
def test_the_checker_finds_the_same_changes(data: st.DataObject) -> None:
    design = read_design(data.draw(st.sampled_from(sorted(DESIGNS.glob("llm_*.txt")))))
    sharding = {one.id: data.draw(st.sampled_from(allowed_dims(one))) for one in design.kernels}
    by_id = {one.id: one for one in design.kernels}
    expected = []
    for edges in (design.edges, layer_edges(design)):
        for edge, needs in zip(edges, needs_by_axes(design.kernels, edges), strict=True):
            change = conversion(given_layout(sharding[edge.source]), needs[sharding[edge.target]])
            if change is not Collective.NONE:
                expected.append((by_id[edge.source].id, change))

    assert list(changes_by_axes(design, sharding)) == expected


def test_least_time_is_below_that_of_fewest_bytes() -> None:
    design = read_design(DESIGNS / "serve_gpt3_prefill_genz_f10_4x.txt")
    by_time, by_bytes = (
        solve_design(design, DesignOptions(objective=objective)).figures.batch_ns
        for objective in (None, ShardingObjective.BYTES)
    )

    assert by_time < by_bytes
