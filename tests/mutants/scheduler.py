"""Mutants of the scheduler: bounds, blocks, times, FIFOs, gangs, the baseline, the simulator."""

from tests.mutants.mutant import Mutant

_BOUND = "scheduler/bounds/makespan.py"
_SPATIAL = "scheduler/partitioners/spatial.py"
_STEADY = "scheduler/timing.py"

SCHEDULER = (
    Mutant(
        _BOUND,
        "        _loaded(dag, tail, head, pes),\n",
        "",
    ),
    Mutant(_BOUND, "path.extend(node, above, end, path_pes)", "path.extend(node, above, end, path_pes + 1)"),
    Mutant(_BOUND, "begin + until_first[node]", "begin"),
    Mutant(_BOUND, "rounds = -(-(len(starts) - pes + 1) // pes)", "rounds = (len(starts) - pes + 1) // pes"),
    Mutant(
        "scheduler/bounds/precedence.py",
        "np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)",
        "np.maximum(dag.volume_in // np.maximum(dag.volume_out, 1), 1)",
    ),
    Mutant(_SPATIAL, "work <= self._work[self._block_sources[first]]", "work < self._work[self._block_sources[first]]"),
    Mutant(_SPATIAL, "heappush(self._spills, (work, node))", "heappush(self._spills, (-work, node))"),
    Mutant(_SPATIAL, "heappush(self._candidates, (-work, -node))", "heappush(self._candidates, (work, -node))"),
    Mutant("scheduler/partitioners/best.py", "max(end - pes // step, 0) - 1", "max(end - pes // step + 1, 0) - 1"),
    Mutant("scheduler/partitioners/block_clock.py", "reading = pace - pace // reads", "reading = pace"),
    Mutant("scheduler/partitioners/exact.py", "cycles < least[after]", "cycles > least[after]"),
    Mutant(_STEADY, "open_block, barrier = block[node], latest", "open_block, barrier = block[node], barrier"),
    Mutant(_STEADY, "np.where(upsampler & (writing < reading), (", "np.where(upsampler, ("),
    Mutant(
        _STEADY,
        "awaited = (volume_in[reducing] - 1) // volume_out[reducing]",
        "awaited = volume_in[reducing] // volume_out[reducing]",
    ),
    Mutant(
        "scheduler/timing.py",
        "largest = np.maximum(dag.volume_in, dag.volume_out) +",
        "largest = dag.volume_in +",
    ),
    Mutant(
        "scheduler/fifo.py",
        "skew = np.maximum(streams_at, memory_at)[join] - emits_at",
        "skew = streams_at[join] - emits_at",
    ),
    Mutant("scheduler/timing.py", "lowest[node] <= seen_at[parent]", "lowest[node] < seen_at[parent]"),
    Mutant(
        "scheduler/gangs.py",
        "in_relay = np.maximum(first_out[producer], last_out[producer] - gangs.reading[consumer])",
        "in_relay = first_out[producer]",
    ),
    Mutant("scheduler/gaps.py", "if stop >= wanted and stop - start >= duration:", "if stop >= wanted:"),
    Mutant("scheduler/simulation/stretch.py", '= "right" if hand_over or hop_cycles else "left"', '= "left"'),
    Mutant("scheduler/simulation/plan.py", "both[4 if replay.is_reversed else 5,", "both[5,"),
    Mutant("scheduler/simulation/unthrottled.py", "self.start[node] = int(largest[1])", "self.start[node] = clock"),
)
