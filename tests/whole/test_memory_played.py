"""Mappings are played element by element: SRAM is never exceeded, nothing is read that is not there."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile as df
from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import extract_graph, flow_of
from dfcompile.dfmodel_backend import Overlap, System, TaskModel, load_system
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.frontend import Program
from dfcompile.lowering import lower_to_canonical
from dfcompile.lowering.levels import graph_of, level_two
from dfcompile.options import Choice
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from tests.examples import examples
from tests.onnx_text import program_from_text
from tests.unit.choosing.automatic_choices import TABLE
from tests.whole.memory_player import Player

ROOT = Path(__file__).parents[2]


def played(
    program: Program, choices: tuple[Choice, ...], pieces: int | None, system: System, partition: str = "best"
) -> Player:
    """Map a model on a chip, and play what the mapping says."""
    library = lower_to_canonical(program, TABLE, choices)
    graph = graph_of(level_two(library, TABLE, choices, ()))
    options = ExtractionOptions(granularity=Granularity(pieces=pieces))
    dag = extract_graph(graph, options, parameters=tuple(program.parameters))
    scheduling = ScheduleOptions(system.accelerator.cores, partition)
    mapping = map_tasks(TaskModel(dag, system, scheduling, scheduling, Overlap.PERFECT_OVERLAP))
    player = Player(flow_of(graph, options), mapping, system.accelerator.sram_bytes or float("inf"))
    player.play()
    assert player.read_bytes + player.written_bytes == mapping.dram_bytes
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
@examples(40)
def test_what_mappings_say_of_memory_holds_for_every_element(
    program: Program, names: tuple[str, str], count: int | None, system: System, partition: str
) -> None:
    played(program, (Choice("MatMul", names[0]), Choice("Conv", names[1])), count, system, partition)


@pytest.mark.parametrize(
    ("model", "pes"), [(Path("examples/lenet/model.py"), 128), (Path("tests/models/encoder_layer.py"), 16)], ids=str
)
def test_what_the_mapping_of_a_whole_model_says_of_memory_holds(model: Path, pes: int) -> None:
    (point,) = df.compile(ROOT / model, pes=(pes,)).exploration.points
    variant = point.variant
    player = Player(flow_of(graph_of(variant.lowered), variant.extraction), point.attained, point.sram_bytes)
    player.play()

    assert player.read_bytes + player.written_bytes == point.attained.dram_bytes
