"""The report of an exploration: a table, JSON or CSV; the same bytes for the same question."""

from collections.abc import Sequence
from math import inf
from typing import Final

from msgspec import structs

from dfcompile.exploration import Explored, Objective
from dfcompile.exploration.asked import MOST_TASKS
from dfcompile.exploration.search import Point
from dfcompile.exploration.space import OfferedGroup
from dfcompile.report.plain_values import Json, rounded
from dfcompile.report.schedule_summary import complex_assumptions
from dfcompile.report.text_tables import Column, Table, folded, listed, page

SCHEMA: Final = "dfcompile-exploration/2"
_UNITS = ((1024**3, "GB"), (1024**2, "MB"), (1024, "kB"), (1, "B"))


def exploration_rows(explored: Explored) -> list[dict[str, Json]]:
    """Return a row per point of the front, all with the same names, which carry the units; no lists."""
    return [_row(explored, point) for point in explored.found.front]


def exploration_record(explored: Explored) -> dict[str, Json]:
    """Return all of an exploration as plain values."""
    found, asked = explored.found, explored.asked
    return {
        "schema": SCHEMA,
        "model": explored.model,
        "objectives": [objective.value for objective in asked.objectives],
        "pes": list(asked.pes),
        "on_chip_memory_bytes": list(asked.memories),
        "granularities": [str(granularity) for granularity in asked.granularities],
        "operators": [
            {
                "origins": list(group.origins),
                "type": group.op_type,
                "expansions": [dict[str, Json](names) for names in group.options],
            }
            for group in explored.groups
        ],
        "combinations": explored.combinations,
        "front": [
            {**_row(explored, point), "choices": _choices(explored, point), "on_chip": list(point.outcome.on_chip)}
            for point in found.front
        ],
        "schedules": found.schedules,
        "tries": found.tries,
        "of_tries": asked.tries,
        "not_excluded": found.open_combinations,
        "gap": _gap(found.gap),
        "gap_without_too_many_tasks": _gap(found.gap_of_schedulable),
        "too_many_tasks": list(found.too_large),
        "finer_tasks": [structs.asdict(each) for each in explored.finer],
        "assumptions": list(assumptions(explored)),
    }


def assumptions(explored: Explored) -> tuple[str, ...]:
    """Return what the figures rest on, each with its source."""
    said = [
        (
            "makespan: of the schedule, replayed element by element with FIFOs as large as they need be [dematteis23]; "
            f"of the I/O at the DRAM bandwidth of system {explored.asked.system.name!r} where that is longer [ko24]"
        ),
        (
            "io: bytes off the chip; an array is on the chip for all of its time or never, those are chosen that leave "
            "the least, exactly; inputs and weights come once, results leave once; FIFOs have memory of their own [own]"
        ),
        "operators of one shape have one expansion [own]",
        *(f"{found.name}: {found.value} [own]" for found in complex_assumptions(explored.complex_types)),
    ]
    if Objective.AREA in explored.asked.objectives:
        said.append("area: 0.5 x on-chip memory in kB + processing elements, in areas of one [asa23]")
    if Objective.ENERGY in explored.asked.objectives:
        said.append(f"energy: power of system {explored.asked.system.name!r} x makespan [ko24]")
    if Objective.COST in explored.asked.objectives:
        said.append(f"cost: price of a chip of system {explored.asked.system.name!r} and its DRAM [ko24]")
    if any(not point.outcome.is_replayed for point in explored.found.front):
        said.append(
            "makespan of what is_replayed is false for: steady times, since a replay is too large [dematteis23]"
        )
    return tuple(said)


def _row(explored: Explored, point: Point) -> dict[str, Json]:
    asked, outcome = explored.asked, point.outcome
    machine = asked.machine(point.candidate.pes, outcome.memory_bytes)
    makespan = machine.makespan_cycles(outcome.makespan_cycles, outcome.io_bytes)
    return {
        "pes": point.candidate.pes,
        "on_chip_memory_bytes": outcome.memory_bytes,
        "makespan_cycles": makespan,
        "schedule_cycles": outcome.makespan_cycles,
        "is_replayed": outcome.is_replayed,
        "io_bytes": outcome.io_bytes,
        "area_pes": rounded(machine.area),
        "energy_j": rounded(machine.energy_j(makespan)),
        "cost_usd": rounded(machine.cost_usd),
        "all_io_bytes": outcome.all_io_bytes,
        "held_bytes": outcome.held_bytes,
        "tasks": outcome.tasks,
        "blocks": outcome.blocks,
        "granularity": str(asked.granularities[point.candidate.granularity]),
        "expansions": " ".join(f"{key}={name}" for key, name in _choices(explored, point).items()),
    }


def _choices(explored: Explored, point: Point) -> dict[str, Json]:
    return {choice.key: choice.name for choice in explored.choices(point.candidate.picks)}


def exploration_table(explored: Explored, width: int, *, verbose: bool) -> str:
    """Return an exploration as tables for people, with ``verbose`` also what it rests on."""
    asked, points, rows = explored.asked, explored.found.front, exploration_rows(explored)
    cycles = (f"{row['makespan_cycles']:,}" + ("" if row["is_replayed"] else " steady") for row in rows)
    columns = [
        Column("makespan\ncycles", tuple(cycles)),
        Column("I/O\nbytes", tuple(f"{row['io_bytes']:,}" for row in rows)),
        Column("area\nPEs", tuple(f"{row['area_pes']:,.0f}" for row in rows)),
    ]
    if Objective.ENERGY in asked.objectives:
        columns.append(Column("energy\nJ", tuple(f"{row['energy_j']:.4g}" for row in rows)))
    if Objective.COST in asked.objectives:
        columns.append(Column("cost\nUSD", tuple(f"{row['cost_usd']:,.2f}" for row in rows)))
    columns.append(Column("tasks", tuple(f"{row['tasks']:,}" for row in rows)))
    if len(asked.granularities) > 1:
        columns.append(Column("granularity", tuple(str(row["granularity"]) for row in rows), is_text=True))
    lowerings = dict.fromkeys(point.candidate.picks for point in points)
    number = {picks: f"{at + 1}" for at, picks in enumerate(lowerings)}
    columns.append(Column("lowering", tuple(number[point.candidate.picks] for point in points)))
    labels = (
        Column("PEs", tuple(str(row["pes"]) for row in rows)),
        Column("on-chip\nmemory", tuple(_size(point.outcome.memory_bytes) for point in points)),
    )
    lines = Table("Pareto set", labels, tuple(columns)).lines(width)
    if explored.groups:
        lines += _lowerings(explored, list(lowerings), width)
    lines += [line for text in _said(explored) for line in folded(text, width, "  ")]
    told = assumptions(explored)
    lines += listed("assumptions", told, width) if verbose else [f"{len(told)} assumptions: -v lists them"]
    return page(lines)


def _lowerings(explored: Explored, lowerings: Sequence[tuple[int, ...]], width: int) -> list[str]:
    """Return the expansions of each lowering: a row per group of operators, a column per lowering."""
    groups = explored.groups
    origins = [group.origins for group in groups]
    names = (one[0] if len(one) == 1 else f"{one[0]} and {len(one) - 1} alike" for one in origins)
    labels = (Column("operator", tuple(names), is_text=True),)
    columns = tuple(
        Column(f"{at + 1}", tuple(_differing(group, pick) for group, pick in zip(groups, picks, strict=True)))
        for at, picks in enumerate(lowerings)
    )
    return Table("lowerings", labels, columns).lines(width)


def _gap(gap: float) -> Json:
    return None if gap == inf else rounded(gap)


def _percent(gap: float) -> str:
    return "without bound" if gap == inf else f"at most {100 * gap:.1f} %"


def _differing(group: OfferedGroup, pick: int) -> str:
    """Return the names of an option but those that all options of the group have."""
    shared = set.intersection(*(set(names) for names in group.options))
    return " ".join(name for op_type, name in group.options[pick] if (op_type, name) not in shared)


def _size(size: int) -> str:
    factor, unit = next((factor, unit) for factor, unit in _UNITS if size % factor == 0 and size >= factor)
    return f"{size // factor:,} {unit}"


def _said(explored: Explored) -> list[str]:
    found, asked = explored.found, explored.asked
    whole = explored.combinations * len(asked.pes) * len(asked.granularities)
    said = [
        (
            f"{explored.model}: {explored.combinations:,} combinations of expansions on {len(asked.pes)} numbers of "
            f"PEs in {len(asked.granularities)} granularities with {len(asked.memories)} amounts of memory; "
            f"{found.schedules:,} of {whole:,} schedules made"
        )
    ]
    if found.gap == 0:
        said.append("proved: nothing in this space is in every figure as good as one of these and better in one")
    else:
        least = _percent(found.gap)
        if found.gap_of_schedulable < found.gap:
            least += f", {_percent(found.gap_of_schedulable)} of those that could be made"
        said.append(
            f"not proved: {found.open_combinations:,} schedules are not excluded by bounds; what they may be better "
            f"than some point in every figure: {least} ({found.tries} of {asked.tries} tries; --tries N makes more)"
        )
    if found.too_large:
        said.append(f"not scheduled, with more than {MOST_TASKS:,} tasks: " + ", ".join(found.too_large))
    if explored.finer:
        most = max(explored.finer, key=lambda each: (each.found_cycles / each.estimated_cycles, each.pes))
        said.append(
            f"hint: only tasks as declared were looked at; in pieces about {most.estimated_cycles:,} cycles on "
            f"{most.pes} PEs instead of {most.found_cycles:,}: "
            f"--granularity declared --granularity pieces={most.pieces}"
        )
    return said
