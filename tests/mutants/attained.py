"""Mutants of attained mappings: bytes and room of stores, words, schedules joined, parts of the time, bounds, sums."""

from tests.mutants.mutant import Mutant

_STORES = "dfmodel_backend/attained/stores.py"
_HOLDING = "dfmodel_backend/attained/holding.py"
_FOOTPRINTS = "dfmodel_backend/attained/footprints.py"
_CORES = "dfmodel_backend/attained/cores.py"
_MAPPING = "dfmodel_backend/attained/mapping.py"
_COSTS = "dfmodel_backend/attained/least_costs.py"
_SCHEDULES = "dfmodel_backend/attained/part_schedules.py"
_MODEL = "dfmodel_backend/attained/task_model.py"

ATTAINED = (
    Mutant(_STORES, "np.where(whole & ~self._leaves, 0, self._written)", "np.where(whole, 0, self._written)"),
    Mutant(_STORES, "self._fetched = np.minimum(self._born, self._read)", "self._fetched = self._born"),
    Mutant(_STORES, "table.is_result[place] | (readers < table.readers[place])", "table.is_result[place]"),
    Mutant(_STORES, "elements[dag.edge_volume == dag.edge_distinct] = 0", "elements[:] = 0"),
    Mutant(_FOOTPRINTS, "(end - begin - work[one] + 1)", "(end - begin - work[one])"),
    Mutant(_FOOTPRINTS, "several & is_ordered[one] & are_alike(reader, order, ", "several & are_alike("),
    Mutant(_HOLDING, "moved[1:][self.stays[:-1]] = 0", "moved[:] = 0"),
    Mutant(_HOLDING, "end = np.maximum.reduceat(spans.end, starts)", "end = spans.end[starts]"),
    Mutant(_HOLDING, "if (change <= self._left).all():", "if True:"),
    Mutant(_CORES, "volume = -(-dag.edge_volume // width[at])", "volume = dag.edge_volume // width[at]"),
    Mutant(_MAPPING, "now += own.makespan_cycles", "now = own.makespan_cycles"),
    Mutant(_MAPPING, "np.maximum.at(column, target, ended)", "pass"),
    Mutant(_MAPPING, "opened = np.concatenate([[0], ends[:-1]]).astype(np.int64)", "opened = np.zeros_like(ends)"),
    Mutant(_MAPPING, "idle = schedule.pes * schedule.makespan_cycles - occupied", "idle = occupied"),
    Mutant(_MAPPING, "sram_bytes=max((configuration.sram_bytes", "sram_bytes=min((configuration.sram_bytes"),
    Mutant(_MAPPING, "energy_j=power * time_ns / NS_PER_S,", "energy_j=power * bound_ns / NS_PER_S,"),
    Mutant(_COSTS, "np.stack([np.minimum(elsewhere, taken), left], axis=1)", "np.stack([taken, left], axis=1)"),
    Mutant(_SCHEDULES, "yield replace(options, demote=True)", "pass"),
    Mutant(_MODEL, "if known is None or found.time_ns < known.time_ns else", "if known is None else"),
    Mutant(_FOOTPRINTS, "found.last_out[part.dag.edge_target[edges]]", "found.last_out[part.dag.edge_source[edges]]"),
)
