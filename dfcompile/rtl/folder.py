"""The folder of `--emit rtl`: circuits, what simulates them, and what schedules print."""

from collections.abc import Mapping, Sequence
from importlib.resources import files

import msgspec
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.host.printable import json_text
from dfcompile.rtl.circuit import Circuit, circuit_of
from dfcompile.rtl.top_module import identifier, top_module
from dfcompile.scheduler import Schedule
from dfcompile.scheduler.simulation.simulator import replay_of

PARTS = ("dataflow_tasks.sv", "fifos.sv", "watch.sv", "Makefile")
PRINTED = "printed.json"
FORMAT = "dfcompile-rtl/1"


class Printed(Struct, frozen=True):
    """What is printed of a schedule, and has to be counted in its circuit.

    Attributes:
        module: that is the circuit.
        tasks: that it has.
        cycles: the makespan; ``None`` if the schedule ends in a deadlock.
    """

    module: str
    tasks: int
    cycles: int | None


class PrintedFigures(Struct, frozen=True):
    """The file that says what is printed of each circuit of a folder."""

    format: str
    circuits: tuple[Printed, ...]


class NamedCircuit(Struct, frozen=True):
    """A circuit with the name of its schedule and the makespan that is printed, ``None`` in a deadlock."""

    name: str
    circuit: Circuit
    cycles: int | None


def scheduled_circuit(name: str, dag: CanonicalDag, schedule: Schedule, *, ends: bool) -> NamedCircuit:
    """Return the circuit of a schedule.

    Raises:
        UserError: its times are not those of a replay, or a task has too many accesses.
    """
    if ends and not schedule.timing.is_exact:  # what ends in a deadlock was replayed
        raise UserError(
            f"--emit rtl: found {schedule.timing.value} times of {name!r} against those of a replay, as circuits take "
            "(with --timing exact; the model may be too large)"
        )
    return NamedCircuit(name, circuit_of(dag, replay_of(schedule)), schedule.makespan_cycles if ends else None)


def rtl_files(circuits: Sequence[NamedCircuit]) -> dict[str, str | bytes]:
    """Return the files of a folder by name: SystemVerilog, a bench, a Makefile, and what is printed."""
    taken = {"circuits", "bench", *(part.partition(".")[0] for part in PARTS)}
    modules = [identifier(one.name, taken) for one in circuits]
    found: dict[str, str | bytes] = {part: (files("dfcompile.rtl") / "parts" / part).read_text() for part in PARTS}
    printed = []
    for one, module in zip(circuits, modules, strict=True):
        circuit = one.circuit
        title = f"{one.name!r}: {circuit.tasks} tasks, {len(circuit.fifos)} FIFOs"
        found[f"{module}.sv"] = top_module(module, title, circuit)
        printed.append(Printed(module, circuit.tasks, one.cycles))
    found["circuits.sv"] = _circuits(dict(zip(modules, (one.circuit for one in circuits), strict=True)))
    found["bench.sv"] = _bench(modules)
    found["bench.cpp"] = _part("bench.cpp").replace("// NAMES", "\n".join(f'    "{module}",' for module in modules))
    figures = PrintedFigures(FORMAT, tuple(printed))
    found[PRINTED] = f"{json_text(msgspec.to_builtins(figures), indent=1)}\n"
    return found


def _circuits(circuits: Mapping[str, Circuit]) -> str:
    """Return the module of all circuits, each with a memory that never waits and a watch."""
    last = len(circuits) - 1
    lines = [_part("circuits.sv").replace("LAST_BIT", str(64 * last + 63)).replace("LAST", str(last))]
    for number, (module, circuit) in enumerate(circuits.items()):
        sizes = max(len(circuit.loads), 1), max(len(circuit.stores), 1)
        most = min(circuit.most_cycles, 2**63 - 1)
        lines += [
            "",
            f"    wire moves_{number}, ended_{number};",
            f"    {module} #(.REGISTERED(REGISTERED), .EXTRA(EXTRA)) circuit_{number} (",
            f"        .clk(clk & ~is_over[{number}]), .reset(reset), .go(go & ~is_over[{number}]),",
            f"        .load(), .loadable({{{sizes[0]}{{1'b1}}}}),",
            f"        .store(), .storable({{{sizes[1]}{{1'b1}}}}),",
            f"        .moves(moves_{number}), .ended(ended_{number})",
            "    );",
            f"    watch #(.MOST(64'd{most})) watch_{number} (",
            f"        .clk(clk), .reset(reset), .moves(moves_{number}), .ended(ended_{number}),",
            f"        .is_over(is_over[{number}]), .is_stuck(is_stuck[{number}]), .cycles(cycles[{64 * number} +: 64])",
            "    );",
        ]
    return "\n".join((*lines, "endmodule", ""))


def _bench(modules: Sequence[str]) -> str:
    last = len(modules) - 1
    shown = [
        f'        $display("{module}: stuck %0d, cycles %0d", is_stuck[{number}], cycles[{64 * number} +: 64]);'
        for number, module in enumerate(modules)
    ]
    text = _part("bench.sv").replace("LAST_BIT", str(64 * last + 63)).replace("LAST", str(last))
    return text.replace("        // SHOWN", "\n".join(shown))


def _part(name: str) -> str:
    return (files("dfcompile.rtl") / "parts" / name).read_text()
