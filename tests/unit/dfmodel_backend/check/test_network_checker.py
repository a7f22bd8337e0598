"""The checker's times of exchange are those of the evaluator on every network, and a damaged one is rejected."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.check.collectives import exchange_ns_per_byte
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign
from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.check.steps import network_ns
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility, parse_compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, StepFigures
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.sharding.designs import allowed_dims
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.designs import designs
from tests.unit.dfmodel_backend.machine.network.named_topologies import NAMED
from tests.unit.dfmodel_backend.solved_designs import solved_design

ORDERS: dict[int, list[tuple[str, ...]]] = {
    1: [("TP",), ("PP",), ("DP",)],
    2: [("TP", "PP"), ("TP", "DP"), ("PP", "DP")],
    3: [("TP", "PP", "DP")],
    4: [("SP", "TP", "PP", "DP")],
}
FACTORS = ("all_reduce_factor", "periodic_factor")
FLAGS = [field.name for field in fields(Compatibility) if field.name not in FACTORS]


@st.composite
def compatibilities(draw: st.DrawFn) -> Compatibility:
    words = [draw(st.sampled_from(["right", "dfmodel"]))]
    words += [name.replace("_", "-") for name in FLAGS if draw(st.integers(0, 3)) == 0]
    words += [f"{name.replace('_', '-')}={draw(st.sampled_from([0, 1, 2]))}" for name in FACTORS]
    return parse_compatibility(",".join(words))


@st.composite
def networked(draw: st.DrawFn) -> Design:
    """A random design of any workload on any network."""
    design = draw(designs())
    name = draw(st.sampled_from(sorted(NAMED)))
    shapes = name.split("_")
    kind = draw(st.sampled_from(list(WorkloadKind)))
    order = draw(st.sampled_from(ORDERS[len(shapes)]))
    links = tuple(
        Link(shape, draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.sampled_from([1.0, 7.0, 30.0])), parallelism, 0.0)
        for shape, parallelism in zip(shapes, order, strict=True)
    )
    chips = math.prod(link.chips for link in links)
    machine = replace(
        design.machine, topology=name, links=links, chips=chips, cores=100,
        domain_chips=draw(st.sampled_from([0, 0, 1, 2, 4, 16])) if len(links) == 3 else 0,
        link_latency_ns=draw(st.sampled_from([0.0, 5.0])),
    )  # fmt: skip
    batch = replace(
        design.execution.batch,
        kind=kind,
        global_batch=chips * 12,
        micro_batch=draw(st.sampled_from([0, 1, 2] if kind is WorkloadKind.LLM else [0])),
    )
    execution = replace(design.execution, batch=batch, separate_reduce_scatter=draw(st.booleans()))
    kernels = tuple(draw(exchanging(kernel, kind)) for kernel in design.kernels)
    return replace(design, kernels=kernels, machine=machine, execution=execution)


@st.composite
def exchanging(draw: st.DrawFn, kernel: DesignKernel, kind: WorkloadKind) -> DesignKernel:
    first = {
        WorkloadKind.LLM: [Collective.NONE, Collective.NONE, *list(Collective)[1:5]],
        WorkloadKind.DLRM: [Collective.NONE, Collective.ALL_TO_ALL, Collective.ALL_REDUCE_PERIODIC],
        WorkloadKind.HPL: [Collective.NONE, Collective.BROADCAST],
        WorkloadKind.FFT: [Collective.NONE, Collective.ALL_TO_ALL],
    }[kind]
    second = [Collective.NONE]
    if kind is WorkloadKind.LLM:
        second += [Collective.ALL_REDUCE, Collective.ALL_GATHER]
    collective = draw(st.sampled_from(first))
    if collective is Collective.BROADCAST:
        second.append(Collective.POINT_TO_POINT)
    return replace(
        kernel,
        collective=collective,
        collective_bytes=draw(st.sampled_from([10.0, 1000.0])) if collective is not Collective.NONE else 0.0,
        collective_2=draw(st.sampled_from(second)),
        tiling=draw(st.sampled_from([Dim.N, Dim.N, Dim.M, *([Dim.K] if kernel.variant.is_gemm else [])])),
    )


@examples(100)
@given(networked(), compatibilities(), st.data())
def test_every_network_takes_the_evaluators_time(
    design: Design, compatibility: Compatibility, data: st.DataObject
) -> None:
    sharding = {kernel.id: data.draw(st.sampled_from(allowed_dims(kernel))) for kernel in design.kernels}
    is_tiled = design.execution.batch.kind is WorkloadKind.LLM
    tiles = data.draw(st.sampled_from([1, 2, 6])) if is_tiled else 1
    members = data.draw(st.lists(st.booleans(), min_size=len(design.kernels), max_size=len(design.kernels)))
    model = DesignModel(design, sharding, tiles, compatibility)

    expected = model.steps(np.array([members], bool)).network_ns[0]

    inside = [kernel for kernel, is_in in zip(design.kernels, members, strict=True) if is_in]
    found = network_ns(DecidedDesign(design, Decision(sharding, tiles, {}), compatibility), inside)
    assert found == pytest.approx(expected, rel=1e-9)


def links_across(name: str, chips: tuple[int, ...], dimension: int) -> int:
    """Count links between the halves of a dimension, one by one; gateways alone are part of outer dimensions."""
    shapes = name.split("_")
    is_torus = set(shapes) == {"r"}
    half = chips[dimension] // 2
    copies = math.prod(chips) // chips[dimension] if is_torus else 1
    ends = range(chips[dimension])
    if shapes[dimension] == "fc":
        return copies * sum(1 for a in ends for b in ends if a < half <= b)
    if shapes[dimension] == "sw":
        return copies * chips[dimension]
    return copies * sum(1 for a in ends if (a < half) != ((a + 1) % chips[dimension] < half))


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_narrowest_cut_is_counted_link_by_link(name: str) -> None:
    chips = (4, 6, 8, 4)[: len(name.split("_"))]
    links = [Link(shape, count, 3.0, "", 0.0) for shape, count in zip(name.split("_"), chips, strict=True)]
    times = []
    for dimension in range(len(chips)):
        parted = math.prod(chips) if set(name) <= {"r", "_"} else math.prod(chips[: dimension + 1])
        times.append((parted / 2) ** 2 / links_across(name, chips, dimension) / 3.0)

    assert exchange_ns_per_byte(name, links, RIGHT) == pytest.approx(max(times))


@pytest.mark.parametrize("compatibility", [RIGHT, ORIGINAL])
@pytest.mark.parametrize(
    "name", ["serve_gpt3_prefill_genz_f10_4x", "dlrm_A_zionex_128", "fft_a100_1024", "hpl_h100_dgx1_1024"]
)
def test_a_damaged_time_of_exchange_is_rejected(name: str, compatibility: Compatibility) -> None:
    solution = solved_design(name, compatibility)
    steps = solution.figures.steps
    number = next(place for place, step in enumerate(steps) if step.network_ns > 0)

    def with_step(step: StepFigures) -> None:
        figures = replace(solution.figures, steps=(*steps[:number], step, *steps[number + 1 :]))
        check_design(solution.design, solution.decision, figures, compatibility)

    with_step(steps[number])
    for factor in (0.0, 1 - 1e-6, 1 + 1e-6, 2.0):
        with pytest.raises(VerificationError, match=rf"configuration {number}: network: found \S+ against \S+"):
            with_step(replace(steps[number], network_ns=steps[number].network_ns * factor))
