"""The checker of shares finds exchanges that are missing, streams that cross them, and shares that are none."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.canonical_dag.kernel import OWN, ProgramShare
from dfcompile.dfmodel_backend import Overlap, System, TaskMapping, TaskModel, dataflow_graph, load_system
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.attained.task_model import ChipsInUse
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping, check_task_share
from dfcompile.dfmodel_backend.sharding.graphs import share_graph
from dfcompile.dfmodel_backend.sharding.program_shares import chip_share
from dfcompile.errors import VerificationError
from dfcompile.frontend import Program
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.shares import SharedProgram
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from tests.onnx_text import program_from_text

TABLE = registered_expansions()
PART = load_system("sn30").with_cores(4).parts(2)[0]
# The rows of a product are split, then the columns of what follows, then what the next product sums over.
MODEL = """g (float[4,6] x, float[6,4] v, float[4,8] w) => (float[4,8] y)
    { h = MatMul(x, v) r = Relu(h) s = Tanh(r) y = MatMul(s, w) }"""
SPLITS = ((0,), (0,), (1,), (2,))  # numbers of loops


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A lowering, the share of one of two chips, and its mapping."""

    whole: CanonicalDag
    share: CanonicalDag
    mapping: TaskMapping
    system: System = PART

    def check(self) -> None:
        check_task_share(self.whole, self.share, self.system, self.mapping)
        check_task_mapping(self.share, self.system, Overlap.PERFECT_OVERLAP, self.mapping)


@cache
def lowered() -> tuple[Program, CanonicalDag]:
    library = lower_to_canonical(program_from_text(MODEL), TABLE)
    return library, extracted(library)


def extracted(library: Program) -> CanonicalDag:
    maps = lower_to_maps(library, TABLE)
    return extract(maps.sdfg, parameters=tuple(maps.parameters))


def case(change: Callable[[ProgramShare], ProgramShare] = lambda share: share, *, apart: bool = True) -> Case:
    library, whole = lowered()
    sharding = dict(zip((kernel.name for kernel in whole.kernels), SPLITS, strict=True))
    share = chip_share(whole, (2,), sharding)
    shared = SharedProgram(library, TABLE, {kernel.name: kernel for kernel in whole.kernels})
    dag = extracted(shared.shared(change(share.program)))
    graph = share_graph(dataflow_graph(whole), PART, sharding)
    chips = ChipsInUse(PART, tuple(sharding.items()), graph.exchanges, share.apart if apart else ())
    options = ScheduleOptions(4)
    tasks = TaskModel(dag, PART, options, options, Overlap.PERFECT_OVERLAP, chips)
    return Case(whole, dag, map_tasks(tasks))


def with_reads(share: ProgramShare, copies: tuple[int, ...]) -> ProgramShare:
    """Return a share whose kernels read these copies of their first operands."""
    kernels = [
        replace(kernel, reads=(copy, *kernel.reads[1:])) for kernel, copy in zip(share.kernels, copies, strict=True)
    ]
    return ProgramShare(tuple(kernels))


def with_one_row(share: ProgramShare) -> ProgramShare:
    """Return a share that has one of four rows where the chip with most of them has two."""
    first, second, *others = share.kernels
    return ProgramShare((replace(first, loops=(("row", 1),)), replace(second, loops=(("i0", 1),)), *others))


def test_what_was_found_is_accepted() -> None:
    found = case()

    found.check()
    assert [(one.tensor, one.kind.value) for one in found.mapping.exchanges] == [
        ("r", "all-to-all"),
        ("y", "reduce-scatter"),
    ]
    assert len(found.mapping.configurations) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: replace(found, exchanges=found.exchanges[1:]), "'r' is not exchanged, and 8 elements miss"),
        (lambda found: replace(found, exchanges=found.exchanges[:1]), "array 'y': 0 bytes are exchanged against"),
        (
            lambda found: replace(
                found, exchanges=(replace(found.exchanges[0], moved_bytes=4), *found.exchanges[1:]), moved_bytes=132
            ),
            "array 'r': 4 bytes are exchanged against at least 32",
        ),
        (lambda found: replace(found, chips=1), "^chips: found 1 against 2"),
        (lambda found: replace(found, dram_bytes=found.dram_bytes // 2), "^bytes of DRAM: found"),
        (lambda found: replace(found, network_bytes=0), "^bytes of messages: found 0"),
        (lambda found: replace(found, moved_bytes=0), "^bytes moved: found 0"),
        (lambda found: replace(found, cost_usd=found.cost_usd / 2), "^cost: found"),
        (lambda found: replace(found, power_w=found.power_w / 2), "^power: found"),
        (lambda found: replace(found, energy_j=found.energy_j / 2), "^energy: found"),
        (lambda found: replace(found, time_s=found.time_s / 2), "^time: found"),
        (
            lambda found: replace(found, sharding=tuple((name, (-1,)) for name, _ in found.sharding)),
            "iterations: found",
        ),
        (
            lambda found: replace(
                found,
                configurations=(replace(found.configurations[0], network_ns=0.0), *found.configurations[1:]),
            ),
            "^configuration 0: network: found 0.0",
        ),
    ],
)
def test_what_is_wrong_is_found(change: Callable[[TaskMapping], TaskMapping], message: str) -> None:
    found = case()

    with pytest.raises(VerificationError, match=message):
        replace(found, mapping=change(found.mapping)).check()


def test_a_stream_that_crosses_an_exchange_is_found() -> None:
    """The parts are as large by rows as by columns: nothing but who has which element tells them apart."""
    found = case(lambda share: with_reads(share, (OWN, OWN, OWN, OWN)))

    with pytest.raises(VerificationError, match=r"reads 'r' as .* leaves it, which is not what every chip needs"):
        found.check()


def test_an_exchange_of_what_needs_none_is_found() -> None:
    found = case(lambda share: with_reads(share, (OWN, 1, 1, OWN)))

    with pytest.raises(VerificationError, match="reads 'h' from an exchange against as"):
        found.check()


def test_a_reader_in_the_configuration_of_the_maker_is_found() -> None:
    with pytest.raises(VerificationError, match="which is exchanged, in configuration 0 against one after"):
        case(apart=False).check()


def test_a_share_of_fewer_iterations_is_found() -> None:
    found = case(with_one_row)

    with pytest.raises(VerificationError, match="iterations: found"):
        found.check()
