"""The folder of `--emit rtl`: circuits, what simulates them, and what schedules print.

A circuit with values begins with inputs and weights, and has to come to the outputs of the original.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.errors import UserError
from dfcompile.frontend import Model, reference_answer
from dfcompile.host.printable import json_text
from dfcompile.lowering.levels import LevelTwo, program_of
from dfcompile.lowering.nests.program import NestProgram, View, root_of
from dfcompile.rtl.arithmetic import WORD_BITS
from dfcompile.rtl.circuit import Circuit, circuit_of
from dfcompile.rtl.datapath import Datapath, datapath_of, refused
from dfcompile.rtl.signals import identifier
from dfcompile.rtl.top_module import top_module
from dfcompile.rtl.value_wires import ValueWires, array_names, file_name, value_modules
from dfcompile.scheduler import Schedule
from dfcompile.scheduler.simulation.simulator import replay_of

Array = npt.NDArray[np.generic]


class ReferenceOutput(Struct, frozen=True):
    """An output of the original.

    Attributes:
        name: the user's.
        array: that holds it.
        values: for each input, shape [inputs], as one array each.
        limits: how far an element may be from these, for each input, shape [inputs].
    """

    name: str
    array: str
    values: tuple[Array, ...]
    limits: tuple[float, ...]


class CircuitValues(Struct, frozen=True, eq=False):
    """The values of a circuit.

    Attributes:
        datapath: what its tasks compute.
        constants: arrays that are the same in every run.
        inputs: of each array that is an input: what it holds in each run.
        outputs: of the original.
    """

    datapath: Datapath
    constants: Mapping[str, Array]
    inputs: Mapping[str, tuple[Array, ...]]
    outputs: tuple[ReferenceOutput, ...]


def circuit_values(
    model: Model,
    lowered: tuple[LevelTwo, ExtractionOptions, CanonicalDag],
    circuit: Circuit,
    feeds: Sequence[Sequence[Array]],
) -> CircuitValues:
    """Return the values of a circuit; the original is run once for each input.

    Args:
        model: as read, with its weights.
        lowered: the model on level 2, how its canonical DAG was made of it, and that DAG.
        circuit: of the DAG.
        feeds: arrays of the model's inputs, for each run.

    Raises:
        UserError: a task has no values, or the original cannot be run; the message says why.
    """
    # What runs programs needs DaCe.
    from dfcompile.lowering.execution.verification import (
        QUANTISATION,
        allowed_error,
        coarsest_dtype,
        is_quantised,
        longest_sum,
        tolerance,
    )

    program, extraction, dag = lowered
    if not isinstance(program, NestProgram):
        raise refused("the model", "a pass that rewrites map scopes", "loop nests")
    datapath = datapath_of(program, extraction, dag, circuit)
    maps = program_of(program)
    relative, steps = tolerance(coarsest_dtype(maps), longest_sum(maps)), QUANTISATION if is_quantised(maps) else 0.0
    answers = [reference_answer(model, feed).outputs for feed in feeds]
    shown = {step.tensor.name: step.source for step in program.steps if isinstance(step, View)}
    outputs = []
    for port, values in zip(program.library.outputs, zip(*answers, strict=True), strict=True):
        limits = tuple(allowed_error(value, relative, steps) for value in values)
        outputs.append(ReferenceOutput(port.name, root_of(port.array, shown), values, limits))
    stored = {array.name for array in datapath.arrays}
    ports = [root_of(port.array, shown) for port in program.library.inputs]
    inputs = {name: values for name, values in zip(ports, zip(*feeds, strict=True), strict=True) if name in stored}
    constants = {name: value for name, value in program.library.parameters.items() if name in stored}
    return CircuitValues(datapath, constants, inputs, tuple(outputs))


def words_of(values: Array) -> str:
    """Return an array as words in hexadecimal, one on a line."""
    bits = WORD_BITS[values.dtype.name]
    numbers = np.ascontiguousarray(values).reshape(-1).view(f"u{bits // 8}").tolist()
    return "".join(f"{number:0{bits // 4}x}\n" for number in numbers)


def from_words(words: Sequence[str], dtype: str) -> Array:
    """Return the array that words in hexadecimal are."""
    return np.array([int(word, 16) for word in words], dtype=f"u{WORD_BITS[dtype] // 8}").view(dtype)


PARTS = ("dataflow_tasks.sv", "fifos.sv", "watch.sv", "Makefile")
VALUE_PARTS = ("arithmetic.sv", "words.sv")
PRINTED = "printed.json"
FORMAT = "dfcompile-rtl/1"
BUILT_PARTS = ("units.sv", "dataflow_tasks.sv", "fifos.sv")
BUILT = ".build.sv"


class ExpectedOutput(Struct, frozen=True):
    """An output of the original, and how far the circuit's may be from it.

    Attributes:
        name: the user's.
        dtype: of its elements.
        words: its elements in hexadecimal, for each input, shape [inputs].
        limits: the largest difference, for each input, shape [inputs].
    """

    name: str
    dtype: str
    words: tuple[str, ...]
    limits: tuple[float, ...]


class Printed(Struct, frozen=True, omit_defaults=True):
    """What is printed of a schedule, and has to be counted in its circuit.

    Attributes:
        module: that is the circuit.
        tasks: that it has.
        cycles: the makespan; ``None`` if the schedule ends in a deadlock.
        outputs: of the original, if the circuit computes values.
        unbuilt: why a circuit that computes values cannot be built; empty if it can.
    """

    module: str
    tasks: int
    cycles: int | None
    outputs: tuple[ExpectedOutput, ...] = ()
    unbuilt: str = ""

    @property
    def inputs(self) -> int:
        """How many runs have values to compare; 1 if none has."""
        return max((len(output.words) for output in self.outputs), default=1)


class PrintedFigures(Struct, frozen=True):
    """The file that says what is printed of each circuit of a folder."""

    format: str
    circuits: tuple[Printed, ...]


class NamedCircuit(Struct, frozen=True):
    """A circuit: name of its schedule, printed makespan, ``None`` in a deadlock, and values if it computes any."""

    name: str
    circuit: Circuit
    cycles: int | None
    values: CircuitValues | None = None


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
    has_values = any(one.values is not None for one in circuits)
    parts = (*PARTS, *(VALUE_PARTS if has_values else ()))
    taken = {"circuits", "bench", *(part.partition(".")[0] for part in (*PARTS, *VALUE_PARTS))}
    modules = [identifier(one.name, taken) for one in circuits]
    found: dict[str, str | bytes] = {part: _part(part) for part in parts}
    printed, shown = [], []
    for number, (one, module) in enumerate(zip(circuits, modules, strict=True)):
        circuit = one.circuit
        title = f"{one.name!r}: {circuit.tasks} tasks, {len(circuit.fifos)} FIFOs"
        shown.append(
            f'        $display("{module}: stuck %0d, cycles %0d", is_stuck[{number}], cycles[{64 * number} +: 64]);'
        )
        if one.values is None:
            found[f"{module}.sv"] = top_module(module, title, circuit)
            printed.append(Printed(module, circuit.tasks, one.cycles))
            continue
        wires = ValueWires(module, circuit, one.values.datapath, one.values.inputs, one.values.constants)
        top = top_module(f"{module}_circuit", title, circuit, wires.lines(), wires.ports())
        modules_of_values = value_modules(module, circuit, one.values.datapath)
        found[f"{module}.sv"] = "\n".join((wires.memory(), top, *modules_of_values))
        unbuilt = _unbuilt(circuit, one.values.datapath)
        if not unbuilt:
            found[f"{module}{BUILT}"] = _built(module, title, circuit, one.values, wires)
        found |= _first_values(module, one.values)
        shown += _shown_outputs(module, number, one.values)
        outputs = tuple(map(_expected, one.values.outputs))
        printed.append(Printed(module, circuit.tasks, one.cycles, outputs, unbuilt))
    found["circuits.sv"] = _circuits(dict(zip(modules, (one.circuit for one in circuits), strict=True)))
    found["bench.sv"] = _bench(len(modules), shown)
    found["bench.cpp"] = _part("bench.cpp").replace("// NAMES", "\n".join(f'    "{module}",' for module in modules))
    figures = PrintedFigures(FORMAT, tuple(printed))
    found[PRINTED] = f"{json_text(msgspec.to_builtins(figures), indent=1)}\n"
    return found


def _unbuilt(circuit: Circuit, datapath: Datapath) -> str:
    """Return why a circuit cannot be built: a family of tasks, and its operation that is none."""
    for family, one in zip(circuit.families, datapath.computations, strict=False):
        if one.unbuilt is not None:
            return (
                f"tasks of {family.scope!r}: found {one.unbuilt} against operations that are circuits (of integers; "
                "float32 from and to them, +, -, *, /, rounding and comparison)"
            )
    return ""


def _built(module: str, title: str, circuit: Circuit, values: CircuitValues, wires: ValueWires) -> str:
    """Return all that a circuit consists of where it is built, in one file.

    Each task has modules of its own. The clock has one edge: what is sampled at the other is a wire.
    """
    parts = [_part(name).replace("always @(posedge clk)", "always @*") for name in BUILT_PARTS]
    top = top_module(f"{module}_circuit", title, circuit, wires.lines(apart=True), wires.ports())
    tasks = "\n".join(value_modules(module, circuit, values.datapath, apart=True))
    return "\n".join((*parts, top, tasks.replace("always @(posedge clk)", "always @*")))


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


def _bench(count: int, shown: Sequence[str]) -> str:
    text = _part("bench.sv").replace("LAST_BIT", str(64 * count - 1)).replace("LAST", str(count - 1))
    return text.replace("        // SHOWN", "\n".join(shown))


def _first_values(module: str, values: CircuitValues) -> dict[str, str]:
    """Return the files with what arrays hold at first."""
    names = array_names(values.datapath)
    found = {file_name(module, names[array]): words_of(value) for array, value in values.constants.items()}
    for array, runs in values.inputs.items():
        found |= {file_name(module, names[array], number): words_of(value) for number, value in enumerate(runs)}
    return found


def _shown_outputs(module: str, number: int, values: CircuitValues) -> list[str]:
    """Return what prints the outputs of a circuit."""
    names, lines = array_names(values.datapath), []
    for place, output in enumerate(values.outputs):
        element = f"all.circuit_{number}.{names[output.array]}[place]"
        lines += [
            f'        $write("{module}: output {place}:");',
            f"        for (place = 0; place < {output.values[0].size}; place = place + 1)",
            f'            $write(" %h", {element});',
            '        $write("\\n");',
        ]
    return lines


def _expected(output: ReferenceOutput) -> ExpectedOutput:
    words = tuple(" ".join(words_of(value).split()) for value in output.values)
    return ExpectedOutput(output.name, output.values[0].dtype.name, words, output.limits)


def _part(name: str) -> str:
    return (files("dfcompile.rtl") / "parts" / name).read_text()
