"""The files that --emit writes: what stages handed over, to look at, compare and read back."""

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from dfcompile.canonical_dag.forms.columns_form import dag_to_npz
from dfcompile.canonical_dag.forms.json_form import dag_to_json
from dfcompile.canonical_dag.forms.text_form import format_dag
from dfcompile.driver import Exploration
from dfcompile.frontend import Program
from dfcompile.frontend.sdfg.onnx_form import program_to_onnx
from dfcompile.lowering.level_two import program_of
from dfcompile.lowering.program_text import format_program
from dfcompile.scheduler.json_form import schedule_to_json
from dfcompile.variants import Variant
from dfcompile.visualization.dag_drawing import dag_to_svg
from dfcompile.visualization.dot import to_dot
from dfcompile.visualization.trace import schedule_to_trace

Files = Iterator[tuple[str, str | bytes]]  # name and content; several variants have a folder each


def emitted_files(exploration: Exploration, kind: str) -> Mapping[str, str | bytes]:
    """Return contents by file name for ``onnx``, ``library``, ``maps``, ``canonical`` or ``schedule``."""
    return MappingProxyType(dict(WRITERS[kind](exploration)))


def _onnx(exploration: Exploration) -> Files:
    program = exploration.model.program
    yield from _program(program, "")
    yield f"{program.name}.onnx", program_to_onnx(program)


def _library(exploration: Exploration) -> Files:
    for variant in exploration.variants:
        yield from _program(variant.library, _folder(exploration, variant))


def _maps(exploration: Exploration) -> Files:
    for variant in exploration.variants:
        yield from _program(program_of(variant.lowered), _folder(exploration, variant))


def _canonical(exploration: Exploration) -> Files:
    for variant in exploration.variants:
        folder = _folder(exploration, variant)
        yield f"{folder}{variant.dag.name}.dag", format_dag(variant.dag)
        yield f"{folder}{variant.dag.name}.json", dag_to_json(variant.dag)
        yield f"{folder}{variant.dag.name}.npz", dag_to_npz(variant.dag)
        yield f"{folder}{variant.dag.name}.dot", to_dot(variant.dag)
        yield f"{folder}{variant.dag.name}.svg", dag_to_svg(variant.dag)


def _schedule(exploration: Exploration) -> Files:
    for point in exploration.points:
        folder = _folder(exploration, point.variant)
        text = schedule_to_json(*point.shown_schedule)
        yield f"{folder}{point.variant.dag.name}-{point.pes}.json", text
        yield f"{folder}{point.variant.dag.name}-{point.pes}.trace.json", schedule_to_trace(*point.shown_schedule)


WRITERS: Mapping[str, Callable[[Exploration], Files]] = MappingProxyType(
    {"onnx": _onnx, "library": _library, "maps": _maps, "canonical": _canonical, "schedule": _schedule}
)


def _folder(exploration: Exploration, variant: Variant) -> str:
    if len(exploration.variants) == 1:
        return ""
    # Names of the user's operators may hold what a file name may not.
    return f"{variant.label.replace('/', '_')}/"


def _program(program: Program, folder: str) -> Files:
    yield f"{folder}{program.name}.txt", format_program(program)
    yield f"{folder}{program.name}.sdfg", json.dumps(program.sdfg.to_json(), indent=1) + "\n"
