"""Mappings are played element by element: SRAM is never exceeded, nothing is read that is not there."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile as df
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import extract_graph, flow_of
from dfcompile.dfmodel_backend import Overlap, System, TaskModel, load_system
from dfcompile.dfmodel_backend.attained import part_schedules
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.attained.stores import HELD_WHOLE
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.frontend import Program
from dfcompile.lowering import lower_to_canonical
from dfcompile.lowering.levels import graph_of, level_two
from dfcompile.options import Choice, Effort
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.depth_first import schedule_depth_first
from tests.examples import examples
from tests.onnx_text import model_from_text, program_from_text
from tests.unit.choosing.automatic_choices import TABLE
from tests.whole.memory_player import Player, player_of

ROOT = Path(__file__).parents[2]


def played(
    program: Program, choices: tuple[Choice, ...], pieces: int | None, system: System, partition: str = "best"
) -> Player:
    """Map a model on a chip, and play what the mapping says."""
    library = lower_to_canonical(program, TABLE, choices)
    graph = graph_of(level_two(library, TABLE, choices, ()))
    options = ExtractionOptions(granularity=Granularity(pieces=pieces))
    dag = extract_graph(graph, options, parameters=tuple(program.parameters))
    scheduling = ScheduleOptions(system.accelerator.cores, partition, effort=Effort.QUICK)  # as of models by default
    mapping = map_tasks(TaskModel(dag, system, scheduling, scheduling, Overlap.PERFECT_OVERLAP))
    player = Player(flow_of(graph, options), mapping, system.accelerator.sram_bytes or float("inf"))
    player.play()
    return player


def machine(pes: int, sram_bytes: float, gb_per_s: float) -> System:
    system = load_system(None).with_cores(pes)
    chip = replace(system.accelerator, sram=Amount(sram_bytes))
    return replace(system, accelerator=chip, dram=replace(system.dram, bandwidth=Amount(gb_per_s)))


machines = st.builds(
    machine,
    st.sampled_from((1, 2, 3, 4, 8, 16)),
    st.sampled_from((8.0, 40.0, 100.0, 400.0, 2000.0, 20000.0, 0.0)),
    st.sampled_from((0.5, 4.0, 64.0)),
)
sizes = st.integers(1, 6)


@st.composite
def products(draw: st.DrawFn) -> Program:
    """Two products with an activation, a residual or a reduction between or after them."""
    m, k, n, o = (draw(sizes) for _ in range(4))
    middle = draw(st.sampled_from(("h = Relu(p)", "h = Softmax<axis=1>(p)", "h = Add(p, p)", "h = Mul(p, c)")))
    last = draw(st.sampled_from(("y = MatMul(h, v)", "q = MatMul(h, v) y = Add(q, q)", "y = ReduceSum(h)")))
    text = f"g (float[{m},{k}] x) => (float[?,?] y) {{ p = MatMul(x, w) {middle} {last} }}"
    generator = np.random.default_rng(0)
    weights = {"w": generator.random((k, n)), "v": generator.random((n, o)), "c": generator.random((n,))}
    return program_from_text(
        text, **{name: value.astype(np.float32) for name, value in weights.items() if name in text}
    )


@st.composite
def convolutions(draw: st.DrawFn) -> Program:
    channels, filters, size, kernel = draw(sizes), draw(sizes), draw(st.integers(3, 7)), draw(st.integers(1, 3))
    after = draw(st.sampled_from(("y = Relu(c)", "y = MaxPool<kernel_shape=[2,2]>(c)", "y = Add(c, c)")))
    pads = kernel // 2
    attributes = f"kernel_shape=[{kernel},{kernel}], pads=[{pads},{pads},{pads},{pads}]"
    text = f"g (float[1,{channels},{size},{size}] x) => (float[?,?,?,?] y) {{ c = Conv<{attributes}>(x, w) {after} }}"
    weights = np.random.default_rng(0).random((filters, channels, kernel, kernel)).astype(np.float32)
    return program_from_text(text, w=weights)


choices = st.tuples(
    st.sampled_from(("mv", "op", "lmv", "ip", "columns", "rows")), st.sampled_from(("im2col", "direct"))
)
pieces = st.sampled_from((None, 1, 2, 4, 7, 16))


@given(st.one_of(products(), convolutions()), choices, pieces, machines, st.sampled_from(("best", "sb-rlx")))
@examples(60)
def test_what_mappings_say_of_memory_holds_for_every_element(
    program: Program, names: tuple[str, str], count: int | None, system: System, partition: str
) -> None:
    played(program, (Choice("MatMul", names[0]), Choice("Conv", names[1])), count, system, partition)


def test_where_single_tasks_could_stream_one_result_is_finished_after_the_other() -> None:
    program = program_from_text("g (float[24] x) => (float[24] y) { r = Relu(x) y = Tanh(r) }")
    player = played(program, (), 24, machine(1, 4.0, 0.5))  # room for one element of r

    assert player.mapping.dram_bytes == 24 * 4 + 24 * 4


def test_filters_that_are_transformed_when_they_are_due_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a convolution by Winograd: depth first, a little before products take them."""
    monkeypatch.setitem(part_schedules._NON_STREAMING, part_schedules.Order.BY_RANK, schedule_depth_first)
    weights = np.ones((6, 4, 3, 3), np.float32)
    text = "g (float[1,4,4,4] x) => (float[1,6,4,4] y) { r = Relu(x) y = Conv<pads=[1,1,1,1]>(r, w) }"
    ways = (Choice("Conv", "winograd"), Choice("Convolution", "windows"), Choice("MatMul", "rows"))
    player = played(program_from_text(text, w=weights), ways, 16, machine(2, 500.0, 0.5))

    assert not player.mapping.schedule.streamed.any()


def test_where_two_tasks_have_no_room_for_what_they_read_again_one_runs_at_a_time() -> None:
    """A row of x stays while it is multiplied by all columns; each of four rows takes all of w."""
    weights = np.ones((6, 3), np.float32)
    program = program_from_text("g (float[4,6] x) => (float[4,3] y) { y = MatMul(x, w) }", w=weights)
    player = played(program, (Choice("MatMul", "rows"),), 4, machine(2, 6 * 4.0, 0.5))

    assert player.mapping.dram_bytes == (4 * 6 + 4 * 18 + 4 * 3) * 4


@pytest.fixture(scope="module")
def residual_block(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two convolutions of 3 x 3, and the input added to their result."""
    conv = "Conv<kernel_shape=[3,3], pads=[1,1,1,1]>"
    text = (
        f"g (float[1,24,8,8] x) => (float[1,24,8,8] y) {{ a = {conv}(x, v) b = BatchNormalization(a, s, s, s, s) "
        f"r = Relu(b) c = {conv}(r, w) d = Add(c, x) y = Relu(d) }}"
    )
    weight = np.ones((24, 24, 3, 3), np.float32)
    file = tmp_path_factory.mktemp("models") / "residual_block.onnx"
    onnx.save(model_from_text(text, v=weight, w=weight, s=np.ones(24, np.float32)), file)
    return file


def check_whole(model: Path, pes: int) -> None:
    """Play the default choice for a model on the canonical machine, and compare with the report."""
    run = df.compile(model, pes=(pes,))
    (point,), (result,) = run.exploration.points, run.report.results
    player = player_of(point)
    player.play()

    assert result.mapping is not None
    assert result.mapping.dram_bytes == player.read_bytes + player.written_bytes
    assert player.most_held <= result.mapping.sram_bytes <= player.sram_bytes


@pytest.mark.parametrize(("model", "pes"), [("examples/lenet/model.py", 128), ("tests/models/encoder_layer.py", 16)])
def test_what_the_mapping_of_a_whole_model_says_of_memory_holds(model: str, pes: int) -> None:
    check_whole(ROOT / model, pes)


@pytest.mark.parametrize("pes", [16, 128])
def test_what_the_mapping_of_a_residual_block_says_of_memory_holds(residual_block: Path, pes: int) -> None:
    check_whole(residual_block, pes)


@cache
def first_played() -> Player:
    """Return the player of a product and a Relu on a chip that has room for some of it."""
    program = program_from_text(
        "g (float[6,5] x) => (float[6,4] y) { p = MatMul(x, w) h = Relu(p) y = Softmax<axis=1>(h) }",
        w=np.ones((5, 4), np.float32),
    )
    return played(program, (Choice("MatMul", "rows"),), 3, machine(6, 40.0, 8.0))


def fewer_bytes(found: TaskConfiguration) -> TaskConfiguration:
    (first, *others) = found.stores
    return replace(found, stores=(replace(first, dram_read_bytes=first.dram_read_bytes - 4), *others))


def all_held(found: TaskConfiguration) -> TaskConfiguration:
    fetch = np.full_like(found.residency.fetch, HELD_WHOLE)
    return replace(found, residency=replace(found.residency, fetch=fetch))


def less_sram(found: TaskConfiguration) -> TaskConfiguration:
    return replace(found, residency=replace(found.residency, sram_bytes=found.residency.sram_bytes - 1))


def fewer_cycles(found: TaskConfiguration) -> TaskConfiguration:
    return replace(found, schedule=replace(found.schedule, makespan_cycles=found.schedule.makespan_cycles - 1))


def small_fifos(found: TaskConfiguration) -> TaskConfiguration:
    return replace(found, schedule=replace(found.schedule, fifo_capacity=found.schedule.fifo_capacity * 0))


def on_one_element(found: TaskConfiguration) -> TaskConfiguration:
    return replace(found, schedule=replace(found.schedule, pe=np.minimum(found.schedule.pe, 0)))


@pytest.mark.parametrize("wrong", [fewer_bytes, all_held, less_sram, fewer_cycles, small_fifos, on_one_element])
def test_what_is_wrong_is_noticed(wrong: Callable[[TaskConfiguration], TaskConfiguration]) -> None:
    one = first_played()
    (found,) = one.mapping.configurations
    player = Player(one.flow, replace(one.mapping, configurations=(wrong(found),)), one.sram_bytes)

    with pytest.raises(AssertionError):
        player.play()
