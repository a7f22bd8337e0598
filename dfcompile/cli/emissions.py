"""The files that --emit writes: what stages handed over, to look at, compare and read back; a schedule as JSON."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dfcompile.api.runs import ScheduleResult
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.forms.json_form import dag_to_json
from dfcompile.canonical_dag.forms.text_form import format_dag
from dfcompile.driver import Exploration
from dfcompile.frontend import Model, Program
from dfcompile.host.printable import json_text
from dfcompile.lowering.levels import program_of
from dfcompile.lowering.program_text import format_program
from dfcompile.records import replace
from dfcompile.rtl.folder import NamedCircuit, rtl_files, scheduled_circuit
from dfcompile.rtl.reference import Array, circuit_values
from dfcompile.scheduler import NO_PE, Schedule
from dfcompile.study import Point
from dfcompile.variants import EXAMPLE_SEED, Variant
from dfcompile.visualization.dataflow import to_dot
from dfcompile.visualization.trace import schedule_to_trace

Files = dict[str, str | bytes]  # content by name


def emitted_files(exploration: Exploration, kind: str) -> Files:
    """Return the files of a kind of ``--emit``; variants have folders, but all circuits are in one.

    Raises:
        UserError: a schedule that cannot be a circuit.
    """
    if kind == "rtl":
        return _circuits(exploration.points)
    if kind == "rtl-values":
        return _circuits(exploration.points, exploration.model)
    if kind == "onnx":
        return _program(exploration.model.program)
    found: Iterator[tuple[Variant, Files]] = ((variant, _WRITERS[kind](variant)) for variant in exploration.variants)
    if kind == "schedule":
        found = ((point.variant, _schedule(point)) for point in exploration.points)
    files: Files = {}
    for variant, made in found:
        # Names of the user's operators may hold what a file name may not.
        folder = f"{variant.label.replace('/', '_')}/" if len(exploration.variants) > 1 else ""
        files |= {f"{folder}{name}": content for name, content in made.items()}
    return files


def emitted_schedules(schedules: Sequence[ScheduleResult]) -> Files:
    """Return the circuits of the schedules of a canonical DAG, in one folder.

    Raises:
        UserError: a schedule that cannot be a circuit.
    """
    several = len({one.schedule.partition for one in schedules}) > 1
    found = []
    for one in schedules:
        name = f"{one.dag.name}-{one.schedule.pes}" + (f"-{one.schedule.partition}" if several else "")
        ends = one.figures.makespan_cycles is not None
        found.append(scheduled_circuit(name, one.dag, one.schedule, ends=ends))
    return rtl_files(found)


def _program(program: Program) -> Files:
    sdfg = json.dumps(program.sdfg.to_json(), indent=1) + "\n"
    return {f"{program.name}.txt": format_program(program), f"{program.name}.sdfg": sdfg}


def _canonical(variant: Variant) -> Files:
    forms: dict[str, Callable[[CanonicalDag], str]] = {"dag": format_dag, "json": dag_to_json, "dot": to_dot}
    return {f"{variant.dag.name}.{suffix}": form(variant.dag) for suffix, form in forms.items()}


def _circuits(points: Sequence[Point], model: Model | None = None) -> Files:
    """Return the circuits of schedules; with a model they compute its values on its example inputs."""
    labels = len({point.variant.label for point in points}) > 1
    found = []
    for point in points:
        name = f"{point.variant.dag.name}-{point.all_pes}" + (f"-{point.variant.label}" if labels else "")
        circuit = scheduled_circuit(name, *point.shown_schedule, ends=True)
        if model is not None:
            circuit = with_values(circuit, model, point, [model.example_feeds(EXAMPLE_SEED)])
        found.append(circuit)
    return rtl_files(found)


def with_values(circuit: NamedCircuit, model: Model, point: Point, feeds: Sequence[Sequence[Array]]) -> NamedCircuit:
    """Return the circuit of a point with what its tasks compute, on some inputs.

    Raises:
        UserError: there is no circuit of a task's values, or the original cannot be run.
    """
    variant, (dag, _) = point.variant, point.shown_schedule
    lowered = variant.lowered, variant.extraction, dag
    return replace(circuit, values=circuit_values(model, lowered, circuit.circuit, feeds))


def _schedule(point: Point) -> Files:
    name, shown = f"{point.variant.dag.name}-{point.all_pes}", point.shown_schedule
    return {f"{name}.json": schedule_to_json(*shown), f"{name}.trace.json": schedule_to_trace(*shown)}


_WRITERS: Final[Mapping[str, Callable[[Variant], Files]]] = MappingProxyType(
    {
        "library": lambda variant: _program(variant.library),
        "maps": lambda variant: _program(program_of(variant.lowered)),
        "canonical": _canonical,
    }
)


FORMAT = "dfcompile-schedule/1"


def schedule_to_json(dag: CanonicalDag, schedule: Schedule) -> str:
    """Return a schedule as JSON text, one node or edge per line; times in cycles, capacities in elements."""
    head = {
        "format": FORMAT,
        "dag": dag.name,
        "pes": schedule.pes,
        "partition": schedule.partition,
        "timing": schedule.timing.value,
        "barriers": schedule.barrier,
        "blocks": schedule.blocks_count,
        "makespan_cycles": schedule.makespan_cycles,
    }
    opening = json_text(head)[:-1]
    nodes = ",\n".join(_nodes(dag, schedule))
    edges = ",\n".join(_edges(dag, schedule))
    return f'{opening}, "nodes": [\n{nodes}\n], "edges": [\n{edges}\n]}}\n'


def _nodes(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    names = ("block", "pe", "start", "first_out", "last_out")
    columns = (getattr(schedule, name).tolist() for name in names)
    for number, values in enumerate(zip(*columns, strict=True)):
        record = {"name": dag.node_name(number), **dict(zip(names, values, strict=True))}
        yield json_text({**record, "pe": None} if record["pe"] == NO_PE else record)


def _edges(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    columns = (dag.edge_source, dag.edge_target, dag.edge_volume, schedule.streamed, schedule.fifo_capacity)
    for source, target, *figures in zip(*(column.tolist() for column in columns), strict=True):
        ends = {"source": dag.node_name(source), "target": dag.node_name(target)}
        yield json_text({**ends, **dict(zip(("volume", "streamed", "fifo_elements"), figures, strict=True))})
