"""Event-driven replay of schedules with bounded FIFOs.

The rules, element by element [dematteis23, section 7; the public simulator]. A task may run once all its producers in
memory, and the task before it on its processing element, have ended (with barriers: all nodes of the blocks before its
own). Buffers and pseudo nodes end as soon as they may run. A task with I reads and O writes (a source: I = O writes, a
sink: O = I reads) then goes through the same accesses whatever the times:

* write j = 1..O needs ``ceil(j * I / O)`` reads;
* in each cycle it writes one element to every output if one is due; then, unless more are due, it reads one
  element from every input; then the cycle passes;
* the streamed outputs are written one after another, in edge order, and so are the inputs read; accesses to memory
  take no time and never wait;
* read j of a FIFO waits for its write j; write j for the read ``j - capacity``; an access happens in the instant in
  which the last thing it waits for does, and may be awaited in that same instant;
* the task starts with its first read of the last streamed input and ends one cycle after its last read or with its last
  write, whichever is later.

On a machine with other `Hardware` read j waits until ``pipeline + hop_cycles`` after write j, write j until
``hop_cycles`` after the read that it waits for, and a task ends ``pipeline`` later: a write takes a place in the
FIFO, and the element is there when it has left the pipeline of its task.
With ``ports`` a cycle passes whenever a task has accessed so many of its edges in a row of reads or of writes and has
not come to the end of the row; these cycles count in w, and the task starts with its first row of reads.

Let w be the number of cycles that pass in the sequence before an access: for read i = 0..I-1 ``floor(i * O / I)``, for
write j = 1..O ``j`` if O >= I; else ``i`` and ``ceil(j * I / O)``. Then an access takes place at ``w + delay``, where
delay is the largest of the time from which the task may run and ``awaited time - w`` of the access itself and of all
before it in the sequence; the task ends ``max(I, O)`` after the delay of its last access.

These are (max, +) recurrences without choices: no queue of events is needed. A node that does not stream works from the
last end that it waits for; all such are passed over once, in order. Each unit of tasks that stream together is solved
by relaxation of whole sequences, stretch by stretch, and stretches that repeat are leapt over in closed form, so that
the cost hardly depends on the volumes where these have a large common divisor. Where they have none, it is some tens of
nanoseconds per element, and stretches are parts of about a million elements: memory does not grow with volumes. Of
tasks that do the same at the same times one is replayed for all.
"""

from dfcompile.scheduler.simulation.replay import NEVER, NO_EDGE, NO_NODE, Replay, Simulation, Wait, WaitReason
from dfcompile.scheduler.simulation.simulator import MakespanProbe, simulate

__all__ = ["NEVER", "NO_EDGE", "NO_NODE", "MakespanProbe", "Replay", "Simulation", "Wait", "WaitReason", "simulate"]
