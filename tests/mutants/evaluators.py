"""Mutants of the evaluators: figures of schedules, of mappings and of designs."""

from tests.mutants.mutant import Mutant

_SCHEDULES = "scheduler/evaluation.py"
_DESIGNS = "dfmodel_backend/evaluate/designs.py"
_SHARDED = "dfmodel_backend/intra_chip/sharded_design.py"
_DRAM = "dfmodel_backend/intra_chip/dram.py"
_CONFIGURATION = "dfmodel_backend/intra_chip/configuration.py"

EVALUATORS = (
    Mutant(_SCHEDULES, "dag.edge_volume[between_tasks & ~schedule.streamed]", "dag.edge_volume[~schedule.streamed]"),
    Mutant(_SCHEDULES, "sum(volume * width for volume, width in sizes)", "sum(volume for volume, width in sizes)"),
    Mutant(
        _SCHEDULES,
        "Fraction(self.makespan_cycles - self.lower_bound_cycles, self.lower_bound_cycles)",
        "Fraction(self.makespan_cycles - self.lower_bound_cycles, self.makespan_cycles)",
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
    Mutant(_DESIGNS, "return float(batch.global_batch) * layers", "return float(layers)"),
    Mutant(_DESIGNS, "return busy + 2 * batch.hidden * batch.sequence", "return busy + batch.hidden * batch.sequence"),
    Mutant(_DESIGNS, "step_ns = max(\n", "step_ns = min(\n"),
    Mutant(
        _SHARDED,
        "size += share.weight_bytes * self.tiles_of_weight(share) / max(1, kernel.num_input)",
        "size += share.weight_bytes * self.tiles_of_weight(share)",
    ),
    Mutant(
        _SHARDED,
        "(members[:, self._source] != members[:, self._target])",
        "(members[:, self._source] > members[:, self._target])",
    ),
    Mutant(_SHARDED, "(ends & ~starts).astype(float) @ (2 * size)", "(ends & ~starts).astype(float) @ size"),
    Mutant(_DRAM, "others = per_stage * in_flight - 1", "others = per_stage * in_flight"),
    Mutant(
        _DRAM,
        "per_stage * forward / design.execution.word_bytes * OPTIMIZER_BYTES",
        "per_stage * forward * OPTIMIZER_BYTES",
    ),
    Mutant(_DRAM, "(made & ~before[:, target] & ~on_chip)", "(made & ~before[:, target])"),
    Mutant(
        _CONFIGURATION,
        "elif flow.leaves or any(not kernels >> reading.kernel & 1 for reading in flow.readings):",
        "elif any(not kernels >> reading.kernel & 1 for reading in flow.readings):",
    ),
    Mutant(_CONFIGURATION, "if (started and needed) or (written and needed_after):", "if started and needed:"),
    Mutant("dfmodel_backend/evaluate/graphs.py", "energy_j=power * time_s", "energy_j=power"),
    Mutant("canonical_dag/analysis/streaming_depth.py", "return deepest - 1 + largest", "return deepest + largest"),
)
