"""What part of arrays in slices an estimate takes to be moved: what finds no room beside others."""

from fractions import Fraction

import pytest

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.canonical_dag.extraction.flow import Flow
from dfcompile.choosing.estimate import Memory, moved_slices
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice
from tests.onnx_text import program_from_text


def chain(products: int, pieces: int) -> Flow:
    """Return products of 64 matrices of 1 kB, one after the other."""
    shape = "float[64,16,16]"
    names = [f"z{number}" for number in range(products)]
    steps = " ".join(f"{after} = MatMul({before}, b)" for before, after in zip(["a", *names], names, strict=False))
    text = f"g ({shape} a, {shape} b) => ({shape} {names[-1]}) {{ {steps} }}"
    outline = OutlinedModel(program_from_text(text), registered_expansions()).outline([Choice("MatMul", "rows")])
    return flow_of(outline.graph, ExtractionOptions(granularity=Granularity(pieces=pieces)))


@pytest.mark.parametrize(
    ("pes", "pieces", "part"),
    [
        (8, 64, 0),  # 8 slices are there at a time
        (16, 64, Fraction(1, 2)),
        (16, 128, 0),  # two tasks for each
        (1000, 64, Fraction(7, 8)),
        (1000, 256, Fraction(7, 8)),
        (32, 1024, 0),
    ],
)
def test_of_shorter_tasks_fewer_slices_are_there_at_a_time(pes: int, pieces: int, part: Fraction) -> None:
    assert moved_slices(chain(2, pieces), pes, Memory(8 * 1024, 1.0)) == {"z0": part}
    assert moved_slices(chain(2, pieces), pes, Memory(float("inf"), 1.0)) == {}


def test_slices_share_the_room() -> None:
    """The first and the third product have one array at hand, the second two: each has 1.5 on the average."""
    part = 1 - Fraction(8, 12)

    assert moved_slices(chain(3, 64), 8, Memory(8 * 1024, 1.0)) == {"z0": part, "z1": part}


@pytest.mark.parametrize(("pieces", "part"), [(24, 0), (12, Fraction(1, 2)), (1, Fraction(23, 24))])
def test_what_tasks_stream_to_single_tasks_is_a_slice(pieces: int, part: Fraction) -> None:
    """Room for one element of 24."""
    flow = handed_on(pieces)

    assert moved_slices(flow, 1, Memory(4, 1.0), is_streamed=True) == {"r": part}
    assert moved_slices(flow, 1, Memory(4, 1.0)) == {}


@pytest.mark.parametrize(("pes", "part"), [(8, 0), (7, Fraction(20, 24))])
def test_what_tasks_stream_to_tasks_that_run_at_once_takes_no_room(pes: int, part: Fraction) -> None:
    """Four tasks and four, room for four elements."""
    flow, memory = handed_on(4), Memory(16, 1.0)

    assert moved_slices(flow, pes, memory, is_streamed=True, is_whole=True) == {"r": part}
    assert moved_slices(flow, pes, memory, is_streamed=True) == {"r": Fraction(20, 24)}


def handed_on(pieces: int) -> Flow:
    program = program_from_text("g (float[24] x) => (float[24] y) { r = Relu(x) y = Tanh(r) }")
    outline = OutlinedModel(program, registered_expansions()).outline(())
    return flow_of(outline.graph, ExtractionOptions(granularity=Granularity(pieces=pieces)))
