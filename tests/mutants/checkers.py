"""Mutants of the checkers: of schedules, of mappings, of designs, of canonical DAGs."""

from tests.mutants.mutant import Mutant

_SCHEDULES = "scheduler/checker.py"
_MAPPINGS = "dfmodel_backend/check/mappings.py"
_DESIGNS = "dfmodel_backend/check/designs.py"
_UNITS = "dfmodel_backend/check/designs.py"

CHECKERS = (
    Mutant(_SCHEDULES, "(end[before] > start[after])", "(end[before] > start[after] + 1)"),
    Mutant(_SCHEDULES, "(schedule.start < opened[block])", "(schedule.start + 1 < opened[block])"),
    Mutant(
        _SCHEDULES, "schedule.block[before] >= schedule.block[after]", "schedule.block[before] > schedule.block[after]"
    ),
    Mutant(
        _SCHEDULES, "last - start < schedule.hardware.cycles(dag),", "last - start < schedule.hardware.cycles(dag) - 1,"
    ),
    Mutant(_SCHEDULES, "emits & (last - first < dag.volume_out - 1)", "emits & (last - first < dag.volume_out - 2)"),
    Mutant(_SCHEDULES, "emits & (first - start < awaited +", "emits & (first - start < awaited - 1 +"),
    Mutant(_SCHEDULES, "(schedule.fifo_capacity < dag.edge_volume)", "(schedule.fifo_capacity < dag.edge_volume - 1)"),
    Mutant(_SCHEDULES, "streamed & (ended > last[target])", "streamed & (ended > last[target] + 1)"),
    Mutant(_SCHEDULES, "held = schedule.fifo_capacity + is_exact", "held = schedule.fifo_capacity + 1"),
    Mutant(_MAPPINGS, "    _check_totals(graph if whole is None else whole, system, mapping)\n", ""),
    Mutant(_MAPPINGS, "changes[0 if is_weight else max(born, 0)]", "changes[0 if is_weight else born + 1]"),
    Mutant(_MAPPINGS, "(len(kernels) > 1 or config.weight_tiles > _rows(kernels[0]))", "len(kernels) > 1"),
    Mutant(
        _MAPPINGS,
        "mapping.bound_time_s > figures.time_s * (1 + _RELATIVE)",
        "mapping.bound_time_s > figures.time_s * 2",
    ),
    Mutant(_DESIGNS, "if cores > machine.cores:", "if cores > machine.cores + 1:"),
    Mutant(
        _DESIGNS,
        "decision.configs[edge.source] > decision.configs[edge.target]",
        "decision.configs[edge.source] > decision.configs[edge.target] + 1",
    ),
    Mutant(_DESIGNS, "figures.dram_bytes > capacity * (1 + RELATIVE)", "figures.dram_bytes > capacity * 2"),
    Mutant(_DESIGNS, " or (cell.x + cell.y) % 2 != is_pcu:", ":"),
    Mutant(_DESIGNS, "if count > 1:", "if count > 2:"),
    Mutant(_UNITS, "if cores > machine.cores or units.pmus > machine.pmu.pmus:", "if units.pmus > machine.pmu.pmus:"),
    Mutant(
        "canonical_dag/verifier.py",
        "(dag.edge_volume != volumes[ends])",
        "(dag.edge_volume > volumes[ends])",
    ),
)
