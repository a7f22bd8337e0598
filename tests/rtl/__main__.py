"""``python -m tests.rtl``: simulates circuits of random schedules, and compares their cycles with the printed ones.

Says also what registered FIFOs cost, of the printed sizes and with a place more. Each design has a seed.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dfcompile.host.outputs import write_folder
from dfcompile.rtl.comparison import read_printed
from dfcompile.rtl.folder import NamedCircuit, rtl_files
from dfcompile.rtl.simulation import SIMULATORS, Fifos, installed_simulators, simulated
from tests.rtl.drawn import drawn_circuits

Cycles = list[int | None]
TOGETHER = 25
KINDS = (Fifos(), Fifos(registered=True), Fifos(registered=True, places=1))


def counted(circuits: Sequence[NamedCircuit], simulator: str, kinds: Sequence[Fifos] = KINDS[:1]) -> list[Cycles]:
    """The cycles of circuits that are simulated in one design, with each kind of FIFOs."""
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "design"
        write_folder(rtl_files(circuits), folder)
        modules = [one.module for one in read_printed(folder)]
        runs = [simulated(folder, simulator, fifos) for fifos in kinds]
        found = [{module: one.cycles for module, (one,) in each.items()} for each in runs]
    return [[cycles[module] for module in modules] for cycles in found]


def counted_apart(circuits: Sequence[NamedCircuit], simulator: str) -> Cycles:
    """The cycles of circuits in designs of a few each: Icarus takes the square of their number."""
    few = (circuits[at : at + TOGETHER] for at in range(0, len(circuits), TOGETHER))
    return [cycles for some in few for cycles in counted(some, simulator)[0]]


def main(words: Sequence[str]) -> int:
    """Simulate designs; 1 if a circuit takes other cycles than are printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.rtl", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="schedules")
    parser.add_argument("--size", type=int, default=100, help="schedules in a design")
    parser.add_argument("--seed", type=int, default=0, help="of the first design")
    parser.add_argument("--simulator", choices=SIMULATORS, default=installed_simulators()[0])
    parser.add_argument("--printed", action="store_true", help="FIFOs as printed alone: not what registered ones cost")
    asked = parser.parse_args(words)
    kinds = KINDS[:1] if asked.printed else KINDS
    differing = deadlocks = done = 0
    ratios: dict[Fifos, list[float]] = {fifos: [] for fifos in kinds[1:]}
    for design in range(-(-asked.count // asked.size)):
        circuits = drawn_circuits(asked.size, asked.seed + design)
        printed, *others = counted(circuits, asked.simulator, kinds)
        for one, cycles in zip(circuits, printed, strict=True):
            if cycles != one.cycles:
                differing += 1
                print(f"seed {asked.seed + design}, {one.name}: {cycles} cycles against {one.cycles} printed")
        done, deadlocks = done + len(circuits), deadlocks + printed.count(None)
        for fifos, found in zip(kinds[1:], others, strict=True):
            both = zip(circuits, found, strict=True)
            # Schedules that nobody would choose, and such without FIFOs, say nothing of what printed sizes cost.
            passing = (
                (one, cycles) for one, cycles in both if one.circuit.fifos and one.circuit.hardware.is_literature
            )
            chosen = ((one, cycles) for one, cycles in passing if not one.name.startswith("wild"))
            ratios[fifos] += [cycles / one.cycles for one, cycles in chosen if cycles and one.cycles]
        print(f"{done} circuits, {deadlocks} deadlocks, {differing} differ", flush=True)
    for fifos, times in ratios.items():
        more = f", each {fifos.places} larger" if fifos.places else ""
        spread = f"{statistics.median(times):.3f} times the printed cycles in the median, {max(times):.3f} at most"
        print(f"registered FIFOs{more}: {spread} ({len(times)} schedules)")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
