"""Mutants of attained mappings: bytes and room of stores, words, schedules joined, parts of the time, bounds, sums."""

from tests.mutants.mutant import Mutant

_STORES = "dfmodel_backend/attained/stores.py"
_HOLDING = "dfmodel_backend/attained/holding.py"
_CORES = "dfmodel_backend/attained/cores.py"
_CONCATENATION = "dfmodel_backend/attained/concatenation.py"
_BREAKDOWN = "dfmodel_backend/attained/breakdown.py"
_MAPPING = "dfmodel_backend/attained/mapping.py"
_COSTS = "dfmodel_backend/attained/least_costs.py"
_SCHEDULES = "dfmodel_backend/attained/part_schedules.py"
_MODEL = "dfmodel_backend/attained/task_model.py"

ATTAINED = (
    Mutant(
        _STORES, "np.where(table.leaves | ~held.whole, table.written, 0)", "np.where(table.leaves, table.written, 0)"
    ),
    Mutant(_STORES, "table.read - held.saved_by_parts - held.saved_by_sharing", "table.read - held.saved_by_parts"),
    Mutant(_STORES, "self.fetched = np.minimum(born, self.read)", "self.fetched = born"),
    Mutant(_STORES, "table.is_result[buffers] | (read_here < table.readers[buffers])", "table.is_result[buffers]"),
    Mutant(_STORES, "part=np.minimum(part, (self.written + born)[row]),", "part=part,"),
    Mutant(_STORES, "(end - begin - edges.work[one] + 1)", "(end - begin - edges.work[one])"),
    Mutant(_HOLDING, "if int(self._load[block]) + window <= self._room:", "if window <= self._room:"),
    Mutant(_CORES, "volume = -(-dag.edge_volume // width[at])", "volume = dag.edge_volume // width[at]"),
    Mutant(_CONCATENATION, "now += own.makespan_cycles", "now = own.makespan_cycles"),
    Mutant(_CONCATENATION, "blocks += len(used)", "pass"),
    Mutant(_CONCATENATION, "np.maximum.at(column, target, ended)", "pass"),
    Mutant(_BREAKDOWN, "opened = np.concatenate([[0], ends[:-1]]).astype(np.int64)", "opened = np.zeros_like(ends)"),
    Mutant(_BREAKDOWN, "idle = schedule.pes * schedule.makespan_cycles - occupied", "idle = occupied"),
    Mutant(_MAPPING, "sram_bytes=max((configuration.sram_bytes", "sram_bytes=min((configuration.sram_bytes"),
    Mutant(_MAPPING, "energy_j=power * time_ns / NS_PER_S,", "energy_j=power * bound_ns / NS_PER_S,"),
    Mutant(_COSTS, "moved[pairs] += np.minimum(elsewhere, taken)", "moved[pairs] += taken"),
    Mutant(_COSTS, "readers[store][smaller] < all_readers[store]", "readers[store][smaller] <= all_readers[store]"),
    Mutant(_SCHEDULES, "return options, replace(options, demote=True)", "return (options,)"),
    Mutant(_MODEL, "if fastest is None or found.time_ns < fastest.time_ns:", "if fastest is None:"),
    Mutant(_MODEL, "moment[task] = numbered(found.block[task])[1]", "moment[task] = 0"),
)
