"""Sums up schedules as parts of a report, and what they rest on."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.records import replace
from dfcompile.report.figure import filled
from dfcompile.report.figures import (
    AssumptionSummary,
    ModelSummary,
    Report,
    Result,
    ScheduleSummary,
    SimulationSummary,
    WhatIfSummary,
    length_ratio,
)
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Depths, Scheduling
from dfcompile.scheduler.simulation import NEVER, Simulation

PROCESSING_ELEMENT = AssumptionSummary(
    "processing element", "one element per edge and cycle, contention-free", "[dematteis23]"
)


def summarize_schedules(
    scheduling: Scheduling,
    schedules: Sequence[CheckedSchedule],
    warnings: tuple[str, ...] = (),
    choices: Sequence[str | None] = (),
) -> Report:
    """Return the report on schedules of a canonical DAG from a file: no model, no mapping.

    Args:
        scheduling: of the graph.
        schedules: of it.
        warnings: to be repeated.
        choices: options that give each schedule, where it was chosen among several.
    """
    dag = scheduling.dag

    def result(found: CheckedSchedule, choice: str | None) -> Result:
        summary = replace(schedule_summary(found, scheduling.depths), choice=choice)
        simulation = None if found.simulation is None else simulation_summary(dag, found.simulation)
        return Result(found.figures.pes, {}, found.figures.makespan_cycles, summary, simulation=simulation)

    results = tuple(map(result, schedules, choices or repeat(None)))
    model = ModelSummary(dag.name, nodes=0, nodes_costed=0, nodes_as_tasks=0, nodes_as_views=0, nodes_folded=0)
    return Report(model, results, (PROCESSING_ELEMENT, *schedule_assumptions(schedules)), warnings=warnings)


def schedule_summary(scheduled: CheckedSchedule, depths: Depths) -> ScheduleSummary:
    """Return the figures of a schedule as the report has them."""
    cycles = scheduled.schedule.makespan_cycles
    ratios = ((one, length_ratio(one.makespan_cycles, cycles)) for one in scheduled.what_if)
    others = tuple(filled(WhatIfSummary, one, ratio=ratio) for one, ratio in ratios)
    return filled(ScheduleSummary, depths, scheduled.figures, scheduled.schedule, scheduled, what_if=others)


def simulation_summary(dag: CanonicalDag, simulation: Simulation) -> SimulationSummary:
    """Return what a replay found as the report has it."""
    makespan = None if simulation.makespan_cycles == NEVER else simulation.makespan_cycles
    reading, writing = (int(stall.sum()) for stall in (simulation.read_stall, simulation.write_stall))
    return SimulationSummary(makespan, reading, writing, tuple(wait.text(dag) for wait in simulation.deadlock))


def schedule_assumptions(schedules: Iterable[CheckedSchedule]) -> tuple[AssumptionSummary, ...]:
    """Return what schedules rest on, each thing said once."""
    made = [found.schedule for found in schedules]
    blocks = (one.partition if one.barrier else f"{one.partition} without barriers" for one in made)
    partitions = ", ".join(dict.fromkeys(blocks))
    timings = ", ".join(dict.fromkeys(schedule.timing.value for schedule in made))
    return (
        AssumptionSummary("spatial blocks", partitions, "--partition [dematteis23]"),
        AssumptionSummary("times of schedules", timings, "--timing [dematteis23]"),
        *_parts(made[0].hardware if made else LITERATURE),
    )


def _parts(hardware: Hardware) -> Iterator[AssumptionSummary]:
    """Yield what is assumed of FIFOs, and of tasks where that is not what the literature assumes."""
    passing = "pass through: read in the cycle of the write, and refilled in that of the read", "[dematteis23]"
    cycles = _cycles(hardware.hop_cycles)
    registered = f"an element is there {cycles} after its write, and its place {cycles} after its read", "--system"
    yield AssumptionSummary("FIFOs", *(registered if hardware.hop_cycles else passing))
    if hardware.pipeline_cycles or hardware.pipelines:
        some = "".join(f", one of {op} {_cycles(many)}" for op, many in hardware.pipelines)
        value = f"an element leaves its task {_cycles(hardware.pipeline_cycles)} later than in the literature{some}"
        yield AssumptionSummary("pipelines", value, "--system")
    if hardware.ports:
        value = f"a task reads at most {hardware.ports} of its edges in a cycle, and writes at most {hardware.ports}"
        yield AssumptionSummary("ports", value, "--system")


def _cycles(count: int) -> str:
    return f"{count} cycle{'' if count == 1 else 's'}"


NAME, SOURCE = "complex numbers", "dfcompile"


def complex_assumptions(types: Iterable[str]) -> tuple[AssumptionSummary, ...]:
    """Return what is assumed of the complex types of a model; nothing of a model without.

    >>> [found.value for found in complex_assumptions(["complex64"])]
    ['complex64 is one element of 8 bytes; an operation on it takes a cycle, as a real one does, not 2 to 8']
    """
    cost = "an operation on it takes a cycle, as a real one does, not 2 to 8"
    sizes = {name: int(name.removeprefix("complex")) // 8 for name in types}
    said = (f"{name} is one element of {size} bytes; {cost}" for name, size in sizes.items())
    return tuple(AssumptionSummary(NAME, value, SOURCE) for value in said)
