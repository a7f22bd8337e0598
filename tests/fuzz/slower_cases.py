"""Small models on drawn machines: what is chosen by default is never slower than what anybody could ask for instead.

That is the published lowering, uniform choices, another limit to FIFOs, or the choice for a machine that has less.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

import dfcompile as df
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import DrawnMachine, drawn_machine
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.fuzz.small_models import small_model

_UNIFORM: Mapping[str, Mapping[str, Sequence[str]]] = {
    "MatMul": {"MatMul": ("mv", "op", "lmv", "ip", "columns", "rows")},
    "Conv": {"Conv": ("direct", "im2col"), "Convolution": ("filters", "windows"), "MatMul": ("rows", "columns", "ip")},
    "Transpose": {"Transpose": ("data-order", "result-order")},
}  # by type of the model
_COMBINED = 2  # expansions of a type
_LARGEST = (8, 12, 16, 24)  # extents of layers
_ROUNDING = 1e-9  # of sums of times


def drawn_small_model(draw: Draw) -> Case:
    return Case(".onnx", small_model(draw, draw.choice(_LARGEST)))


def judge_slower(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model: whether something is faster than what is chosen by default."""
    machine = drawn_machine(draw)
    show("choosing")
    chosen = least_time(path, machine)
    for name, what, other in _others(path, machine, draw):
        if chosen > other * (1 + _ROUNDING):
            detail = f"{chosen / other:.4f} times {what}: {chosen * 1e9:.1f} against {other * 1e9:.1f} ns on {machine}"
            return Outcome(Verdict.SLOWER, f"slower than {name}", detail)
    return Outcome(Verdict.ACCEPTED)


def least_time(path: Path, machine: DrawnMachine, **options: object) -> float:
    """Return the least time of a model on a machine, in seconds, over all combinations of what options name."""
    results = df.compile(path, pes=[machine.pes], system=machine.file(), **options).report.results
    return min(result.mapping.time_s for result in results if result.mapping is not None)


def _others(path: Path, machine: DrawnMachine, draw: Draw) -> Iterator[tuple[str, str, float]]:
    """Yield what the choice is compared with: in a word, in detail, and its time in seconds."""
    yield "the published lowering", "the published lowering", least_time(path, machine, expand="published")
    pieces = draw.choice(["declared", *(f"pieces={machine.pes * times}" for times in (1, 2, 4))])
    rules = _uniform(path, draw)
    found = least_time(path, machine, expand=rules or "published", granularity=pieces)
    yield "uniform choices", f"one of {rules} with {pieces}", found
    for name, lesser in machine.lesser(draw).items():
        yield f"with less: {name}", f"what is chosen on {lesser}", least_time(path, lesser)
    limit = draw.choice([1, 2, 16])
    yield "with limited FIFOs", f"what is chosen with --max-fifo {limit}", least_time(path, machine, max_fifo=limit)


def _uniform(path: Path, draw: Draw) -> list[str]:
    """Return some expansions of each type of the model, which are all combined."""
    types = {node.op_type for node in onnx.load(path).graph.node}
    names = {of: each for op_type, rules in _UNIFORM.items() if op_type in types for of, each in rules.items()}
    return [f"{of}={','.join(draw.some(each, _COMBINED)[:_COMBINED])}" for of, each in names.items()]
