"""Mutants of the evaluators: figures of schedules, of mappings and of designs."""

from tests.mutants.mutant import Mutant

_SCHEDULES = "scheduler/evaluation.py"
_DESIGNS = "dfmodel_backend/evaluate/designs.py"
_SHARDED = "dfmodel_backend/intra_chip/sharded_design.py"
_FLOWS = "dfmodel_backend/intra_chip/flow_columns.py"

EVALUATORS = (
    Mutant(
        _SCHEDULES, "dag.edge_volume[dag.between_tasks & ~schedule.streamed]", "dag.edge_volume[~schedule.streamed]"
    ),
    Mutant(_SCHEDULES, "dag.edge_element_bytes[stored].astype(np.int64)", "(dag.edge_element_bytes[stored] > 0)"),
    Mutant(
        _SCHEDULES,
        "Fraction(makespan_cycles - bound_cycles, bound_cycles)",
        "Fraction(makespan_cycles - bound_cycles, makespan_cycles)",
    ),
    Mutant(_DESIGNS, "(degrees.pipeline - 1) * (handed", "degrees.pipeline * (handed"),
    Mutant(
        _DESIGNS,
        "dram_traffic_bytes=runs * sum(step.dram_bytes for step in steps)",
        "dram_traffic_bytes=sum(step.dram_bytes for step in steps)",
    ),
    Mutant(
        _DESIGNS,
        "network_traffic_bytes=runs * sum(step.network_bytes for step in steps)",
        "network_traffic_bytes=runs * sum(step.dram_bytes for step in steps)",
    ),
    Mutant(_DESIGNS, "return 1 + (model.degrees.pipeline - 1) / (", "return 1 + model.degrees.pipeline / ("),
    Mutant(_DESIGNS, "return float(_repetitions(batch)) * (", "return float(batch.layers) * ("),
    Mutant(_DESIGNS, "return busy + 2 * batch.hidden * batch.sequence", "return busy + batch.hidden * batch.sequence"),
    Mutant(_DESIGNS, "step_ns = max(", "step_ns = min("),
    Mutant(
        _SHARDED,
        "size += share.weight_bytes * self.tiles_of_weight(share) / max(1, kernel.num_input)",
        "size += share.weight_bytes * self.tiles_of_weight(share)",
    ),
    Mutant(_FLOWS, "self._padded(members)) | self.written_out(members)", "self._padded(members))"),
    Mutant(_FLOWS, "border=2 * tile,", "border=tile,"),
    Mutant(_SHARDED, "others = per_stage * in_flight - 1", "others = per_stage * in_flight"),
    Mutant(
        _SHARDED,
        "per_stage * forward / design.execution.word_bytes * OPTIMIZER_BYTES",
        "per_stage * forward * OPTIMIZER_BYTES",
    ),
    Mutant(
        _FLOWS,
        "later[:, self.source] & self._needed(later)",
        "later[:, self.source]",
    ),
    Mutant(
        _FLOWS,
        "self.leaves | self.is_read & ~self.readers.all(padded)",
        "self.is_read & ~self.readers.all(padded)",
    ),
    Mutant(_FLOWS, "self._needed(earlier) | ~is_there &", "self._needed(earlier) & ~is_there &"),
    Mutant("dfmodel_backend/evaluate/graphs.py", "energy_j=power * time_s", "energy_j=power"),
    Mutant("canonical_dag/analysis.py", "depths = deepest - 1 + largest", "depths = deepest + largest"),
)
