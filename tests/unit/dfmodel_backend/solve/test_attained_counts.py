"""Mappings on several chips: more are never slower, none is below the bound, what has no share is whole."""

import random
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.canonical_dag.kernel import ProgramShare
from dfcompile.dfmodel_backend import (
    AttainedCounts,
    ChipCounts,
    Chosen,
    MappingOptions,
    Overlap,
    System,
    TaskMapping,
    TaskModel,
    dataflow_graph,
    load_system,
)
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.solve import attained_counts
from dfcompile.driver import explore
from dfcompile.lowering import lower_to_maps
from dfcompile.lowering.shares import SharedProgram, choices_of
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions, schedule
from tests.asked_options import asked
from tests.examples import examples
from tests.onnx_text import model_from_text
from tests.unit.dfmodel_backend.sharding.tiny_programs import random_system
from tests.unit.lowering.split_programs import MODELS, TABLE, Lowered, lowered

SMALL = st.sampled_from([name for name in MODELS if name != "attention"])  # what is slow there is the ideal


def mappings_of(
    whole: Lowered,
    system: System,
    overlap: Overlap,
    chips: tuple[int, ...],
    *,
    never: tuple[str, ...] = (),
    known: Schedule | None = None,
) -> tuple[TaskMapping, ...]:
    """Return the mappings of a program on numbers of chips of a system; some of its kernels have no shares."""
    program = SharedProgram(whole.library, TABLE, {kernel.name: kernel for kernel in whole.dag.kernels})

    def lower(share: ProgramShare) -> CanonicalDag | tuple[str, ...]:
        refused = tuple(one.kernel for one in share.kernels if one.kernel in never and one.loops)
        if refused:
            return refused
        maps = lower_to_maps(program.shared(share), TABLE, tuple(choices_of(whole.maps.chosen)))
        return extract(maps.sdfg, parameters=tuple(maps.parameters))

    scheduling = ScheduleOptions(system.accelerator.cores)
    tasks = TaskModel(whole.dag, system, scheduling, scheduling, overlap, known=known)
    taken = None if known is None else tasks.whole(known)
    tasks = replace(tasks, chosen=None if taken is None else Chosen(taken, tasks.stores))
    ideals = ChipCounts(dataflow_graph(whole.dag), system, MappingOptions(overlap=overlap), chips)
    return tuple(AttainedCounts(tasks, ideals, lower).fastest())


@example("interpolated", 0, Overlap.PERFECT_OVERLAP)  # its steps are not all lowered by one expansion
@examples(8)
@given(SMALL, st.integers(0, 2**40), st.sampled_from(list(Overlap)))
def test_more_chips_are_never_slower_and_none_is_below_the_bound(name: str, seed: int, overlap: Overlap) -> None:
    """All mappings pass the checkers on the way."""
    rng = random.Random(seed)
    system = random_system(rng)
    chip = replace(system.accelerator, lanes_per_core=rng.choice([1, 4]), stages_per_core=rng.choice([1, 2]))
    chips = tuple(chips for chips in range(1, min(system.chips, 4) + 1) if system.parts(chips))
    found = mappings_of(lowered(name), replace(system, accelerator=chip), overlap, chips)

    times = [one.time_s for one in found]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(times))
    for one in found:
        assert one.bound_time_s <= one.time_s * (1 + 1e-12)
        assert (one.chips == 1) is not bool(one.sharding)


def test_a_kernel_without_shares_is_whole_and_said_to_be() -> None:
    system = load_system("sn30").with_cores(4)
    slow = replace(system, accelerator=replace(system.accelerator, frequency_ghz=1e-6))
    whole = lowered("two layers")
    product = whole.dag.kernels[-1].name
    (split,) = mappings_of(whole, slow, Overlap.PERFECT_OVERLAP, (2,))
    (kept,) = mappings_of(whole, slow, Overlap.PERFECT_OVERLAP, (2,), never=(product,))

    assert (split.chips, kept.chips) == (2, 2)
    assert dict(split.sharding)[product] != (-1,)
    assert dict(kept.sharding)[product] == (-1,)
    assert kept.time_s >= split.time_s
    (said,) = (one.value for one in kept.assumptions if one.name == "kernels whole on every chip")
    assert said == f"1: {product}: their operators do not say what a share is"
    assert all(one.name != "kernels whole on every chip" for one in split.assumptions)


def test_schedules_that_are_known_of_the_whole_are_of_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped: list[TaskModel] = []

    def noting(tasks: TaskModel) -> TaskMapping:
        mapped.append(tasks)
        return map_tasks(tasks)

    monkeypatch.setattr(attained_counts, "map_tasks", noting)
    whole, system = lowered("two layers"), load_system("sn30").with_cores(4)
    slow = replace(system, accelerator=replace(system.accelerator, frequency_ghz=1e-6))
    known = schedule(whole.dag, ScheduleOptions(4, timing=Timing.EXACT))

    mappings_of(whole, slow, Overlap.PERFECT_OVERLAP, (2,), known=known)

    assert {(one.known, one.chosen) for one in mapped if one.chips is not None} == {(None, None)}


def test_where_no_kernel_is_split_one_chip_alone_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped: list[int] = []

    def counting(tasks: TaskModel) -> TaskMapping:
        mapped.append(1 if tasks.chips is None else tasks.chips.system.chips)
        return map_tasks(tasks)

    monkeypatch.setattr(attained_counts, "map_tasks", counting)
    whole = lowered("two layers")
    everything = tuple(kernel.name for kernel in whole.dag.kernels)
    (found,) = mappings_of(whole, load_system("sn30").with_cores(4), Overlap.PERFECT_OVERLAP, (4,), never=everything)

    assert (found.chips, mapped) == (1, [1])


def test_who_writes_a_part_of_an_array_is_whole(tmp_path: Path) -> None:
    """Each phase of a transposed convolution writes every second column of one result."""
    model = tmp_path / "phases.onnx"
    text = "g (float[1,8,4,8] x, float[8,8,1,3] w) => (float[1,8,4,17] y) { y = ConvTranspose<strides=[1,2]>(x, w) }"
    onnx.save(model_from_text(text), model)
    options = asked(model, (4,), "ConvTranspose=phases", chips=2, system="h100")
    (point,) = explore(options).points

    kernels = dict(point.attained.sharding)
    assert point.attained.chips == 2
    assert {choice for name, choice in kernels.items() if "interleave" in name} == {(-1,)}
    assert any(choice != (-1,) for choice in kernels.values())


def test_of_whole_arrays_the_bound_is_that_of_what_was_tried(tmp_path: Path) -> None:
    """Each of n tasks counts all of an array: half of them count half of it, a quarter of the work."""
    model = tmp_path / "product.onnx"
    onnx.save(model_from_text("g (float[16,32] x, float[32,24] w) => (float[16,24] y) { y = MatMul(x, w) }"), model)
    options = asked(model, (16,), "MatMul=op", chips=2, system="sn30", volumes="array")
    (point,) = explore(options).points

    assert point.attained.chips == 2
    assert 0 < point.attained.bound_time_s <= point.attained.time_s
    assert "bound on several chips" in {one.name for one in point.attained.assumptions}
