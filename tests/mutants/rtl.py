"""Mutants of the circuits: tasks and FIFOs in SystemVerilog, and what joins them."""

from tests.mutants.mutant import Mutant

_TASKS, _FIFOS = "rtl/parts/dataflow_tasks.sv", "rtl/parts/fifos.sv"
_WORDS, _DATAPATH, _VALUES = "rtl/parts/words.sv", "rtl/datapath.py", "rtl/values_module.py"
_CIRCUIT, _TOP, _ROWS = "rtl/circuit.py", "rtl/top_module.py", "rtl/signals.py"

RTL = (
    Mutant(_TASKS, "is_due[t] <= credit[t] >= READS;", "is_due[t] <= credit[t] > READS;"),
    Mutant(_TASKS, "credit[t] - READS < READS", "credit[t] - READS <= READS"),
    Mutant(
        _TASKS,
        "assign moves = |(push & space) | |(pull & available) | drains;",
        "assign moves = |(push & space) | drains;",
    ),
    Mutant(_TASKS, "has_unread & (~is_due | (is_one & writing));\n        for", "has_unread & ~is_due;\n        for"),
    Mutant(_TASKS, "is_done = ~has_unread & (~is_due | (is_one & writing))", "is_done = ~has_unread & ~is_due"),
    Mutant(_TASKS, "reading & ~got[k * COUNT +: COUNT];", "reading;"),
    Mutant(_TASKS, "writing & ~sent[k * COUNT +: COUNT];", "writing;"),
    Mutant(_TASKS, "| drains;", "| 0;"),
    Mutant(_TASKS, "assign ended = ends[COUNT*(DEPTH-1) +: COUNT];", "assign ended = is_done;"),
    Mutant(_TASKS, "elements[COUNT*OUTPUTS*(DEPTH-1) +: COUNT*OUTPUTS]", "elements[0 +: COUNT*OUTPUTS]"),
    Mutant(_TASKS, "writing = writing & sent[(k - 1) * COUNT +: COUNT];", "writing = writing;"),
    Mutant(_TASKS, "reading = reading & got[(k - 1) * COUNT +: COUNT];", "reading = reading;"),
    Mutant(_FIFOS, "is_taken <= push & space;", "is_taken <= enter;"),
    Mutant(_FIFOS, "BACKWARD ? ~is_full : ~is_full | (pull & available)", "~is_full"),
    Mutant(_FIFOS, "FORWARD ? ~is_empty : ~is_empty | enter", "~is_empty"),
    Mutant(_FIFOS, "elements[(FORWARD - 2) * COUNT", "elements[(FORWARD - 1) * COUNT"),
    Mutant(_FIFOS, "places[(BACKWARD - 2) * COUNT", "places[(BACKWARD - 1) * COUNT"),
    Mutant(_FIFOS, "FORWARD > 1 && |(elements << 2 * COUNT)", "0"),
    Mutant(_FIFOS, "free[t] = CAPACITY;", "free[t] = CAPACITY > 1 ? CAPACITY - 1 : 1;"),
    Mutant(_CIRCUIT, "            awaited |= {previous[node]} - {NO_NODE}\n", ""),
    Mutant(_CIRCUIT, "if block[other] >= block[node]}", "if block[other] > block[node]}"),
    Mutant(_CIRCUIT, "block[node] if replay.barrier else 0", "0"),
    Mutant(_CIRCUIT, "hardware=replay.hardware", "hardware=LITERATURE"),
    Mutant(_TOP, "CAPACITY({key[2]} + EXTRA)", "CAPACITY({key[2] + 1} + EXTRA)"),
    Mutant(_TOP, "DEPTH({family.pipeline})", "DEPTH(1)"),
    Mutant(_TOP, 'f"&{{', 'f"|{{'),
    Mutant(_ROWS, "self.steps[place] == 1 for", "self.steps[place] >= 1 for"),
    Mutant(_WORDS, "is_empty[i] ? written[i * WIDTH +: WIDTH] : ", ""),
    Mutant(_WORDS, "first[t] == PLACES - 1 ? 0 : first[t] + 1", "first[t]"),
    Mutant(_DATAPATH, "for size, stride in loops[still:] if stride", "for size, stride in loops[:0] if stride"),
    Mutant(_VALUES, 'turn = "m" if operand.is_in_turn', 'turn = "0" if operand.is_in_turn'),
)
