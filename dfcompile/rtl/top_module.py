"""The top module of a circuit as SystemVerilog: families of tasks as loops, FIFOs between them, who waits for whom."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from dfcompile.host.printable import printable
from dfcompile.rtl.circuit import Circuit, Family, Fifo
from dfcompile.rtl.signals import RegularRows, Signals, regular_rows

_WIDTH = 120  # of a line
_PORTS = """\
    parameter REGISTERED = 0,  // cycles of a FIFO, there and back, beyond those printed
    parameter EXTRA = 0        // places that each FIFO has more than printed
) (
    input  wire clk,
    input  wire reset,
    input  wire go,        // the cycle is being evaluated; without, no handshake is up
    output wire [{loads}:0] load,      // a task wants its next element from memory
    input  wire [{loads}:0] loadable,  // which is there
    output wire [{stores}:0] store,     // a task has its next element for memory
    input  wire [{stores}:0] storable,  // which has a place for it
    output wire moves,     // an element moves
    output wire ended      // all has been done{more}
);"""


def module_head(name: str, circuit: Circuit, ports: Sequence[str] = ()) -> str:
    """Return how the module of a circuit begins: its parameters and ports, with some more."""
    sizes = {"loads": max(len(circuit.loads), 1) - 1, "stores": max(len(circuit.stores), 1) - 1}
    lines = ",\n    ".join(ports)
    return f"module {name} #(\n" + _PORTS.format(**sizes, more=f"\n    , {lines}" if ports else "")


def top_module(
    name: str, title: str, circuit: Circuit, values: Iterable[str] | None = None, ports: Sequence[str] = ()
) -> str:
    """Return the module of a circuit.

    Args:
        name: of the module.
        title: says in a line what it is a circuit of.
        circuit: the hardware.
        values: lines that move values; ``None``: streams carry the presence of elements alone.
        ports: that these lines have.
    """
    head = module_head(name, circuit, ports)
    return "\n".join((f"// A circuit of {printable(title)}.", head, *_body(circuit, values), "endmodule", ""))


def _body(circuit: Circuit, values: Iterable[str] | None) -> Iterator[str]:
    signals = Signals(circuit)
    groups = _groups(circuit.fifos, signals)
    yield "    genvar i;"
    yield f"    localparam HOP = {circuit.hardware.hop_cycles} + REGISTERED;  // cycles through a FIFO, there and back"
    most = max((max(family.inputs, family.outputs, 1) for family in circuit.families), default=1)
    yield f"    localparam PORTS = {circuit.hardware.ports or most};  // inputs that a task reads in a cycle; outputs"
    parts = len(circuit.families) + len(groups)
    if parts:
        yield f"    wire [{parts - 1}:0] moving;"
    for number, (label, family) in enumerate(zip(signals.labels, circuit.families, strict=False)):
        yield from _tasks(number, label, family, has_values=values is not None)
    memory = len(circuit.waits) - circuit.tasks
    if memory:
        yield ""
        yield "    // buffers, and the ends of the graph"
        yield f"    wire [{memory - 1}:0] memory_ended;"
    nodes = signals.labels if memory else signals.labels[:-1]
    yield ""
    yield f"    assign moves = {'|moving' if parts else _NO};"
    yield from _wrapped(f"assign ended = {_all([f'{label}_ended' for label in nodes])};", "    ")
    for number, (key, ports) in enumerate(groups.items()):
        yield from _fifos((number, len(circuit.families) + number), key, ports, signals)
    places = [signals.pull(port) for port in circuit.loads], [signals.push(port) for port in circuit.stores]
    yield from _memory(("load", "pull", "available"), places[0], signals.labels)
    yield from _memory(("store", "push", "space"), places[1], signals.labels)
    if circuit.blocks:
        yield from _barriers(circuit.blocks, signals)
    yield from _waits(circuit, signals)
    yield from values or ()


_NO, _YES = "1'b0", "1'b1"


def _tasks(number: int, label: str, family: Family, *, has_values: bool) -> Iterator[str]:
    count = family.count
    yield ""
    yield f"    // tasks of {printable(family.scope)}"
    yield f"    wire [{count - 1}:0] {label}_may_run, {label}_ended;"
    if has_values:
        yield f"    wire [{count - 1}:0] {label}_reads, {label}_writes;"
    ports = (("pull", "available", family.inputs), ("push", "space", family.outputs))
    for asks, answers, width in ports:
        if width:
            leaves = f", {label}_leave" if asks == "push" else ""
            yield f"    wire [{width * count - 1}:0] {label}_{asks}, {label}_{answers}{leaves};"
    yield f"    dataflow_tasks #(.COUNT({count}), .READS({family.reads}), .WRITES({family.writes}),"
    yield f"        .INPUTS({max(family.inputs, 1)}), .OUTPUTS({max(family.outputs, 1)}),"
    yield f"        .DEPTH({family.pipeline}), .PORTS(PORTS)) {label} ("
    yield f"        .clk(clk), .reset(reset), .go(go), .may_run({label}_may_run),"
    for asks, answers, width in ports:
        asked, answered = (f"{label}_{asks}", f"{label}_{answers}") if width else ("", f"{{{count}{{{_YES}}}}}")
        yield f"        .{asks}({asked}), .{answers}({answered}),"
    yield f"        .leave({f'{label}_leave' if family.outputs else ''}),"
    if has_values:
        yield f"        .reads({label}_reads), .writes({label}_writes),"
    yield f"        .moves(moving[{number}]), .ended({label}_ended)"
    yield "    );"


_Group: TypeAlias = tuple[int, int, int]  # families of writers and of readers, and capacity of the FIFOs between


def _groups(fifos: Iterable[Fifo], signals: Signals) -> dict[_Group, list[tuple[int, int]]]:
    """Return the ports of FIFOs, each in its family, that are one vector of FIFOs."""
    groups: dict[_Group, list[tuple[int, int]]] = {}
    for fifo in fifos:
        (source, push), (target, pull) = signals.push(fifo.push), signals.pull(fifo.pull)
        groups.setdefault((source, target, fifo.capacity), []).append((push, pull))
    return groups


def _fifos(numbers: tuple[int, int], key: _Group, ports: list[tuple[int, int]], signals: Signals) -> Iterator[str]:
    number, moving = numbers
    writer, reader = (signals.labels[family] for family in key[:2])
    name = f"fifos_{number}"
    yield ""
    yield f"    // from {writer} to {reader}"
    yield f"    wire [{len(ports) - 1}:0] {name}_push, {name}_space, {name}_enter;"
    yield f"    wire [{len(ports) - 1}:0] {name}_pull, {name}_available;"
    yield f"    fifos #(.COUNT({len(ports)}), .CAPACITY({key[2]} + EXTRA), .FORWARD(HOP), .BACKWARD(HOP)) {name} ("
    yield f"        .clk(clk), .reset(reset), .push({name}_push), .space({name}_space), .enter({name}_enter),"
    yield f"        .pull({name}_pull), .available({name}_available), .moves(moving[{moving}])"
    yield "    );"
    for rows in regular_rows([((), (own, *both)) for own, both in enumerate(ports)]):
        yield from _joined(
            rows,
            (f"{name}_push", f"{writer}_push", 0, 1),
            (f"{writer}_space", f"{name}_space", 1, 0),
            (f"{name}_enter", f"{writer}_leave", 0, 1),
            (f"{name}_pull", f"{reader}_pull", 0, 2),
            (f"{reader}_available", f"{name}_available", 2, 0),
        )


def _memory(words: tuple[str, str, str], places: list[tuple[int, int]], labels: list[str]) -> Iterator[str]:
    access, asks, answers = words
    yield ""
    yield f"    // {access}s"
    if not places:
        yield f"    assign {access} = {_NO};"
    for rows in regular_rows([((family,), (mine, port)) for mine, (family, port) in enumerate(places)]):
        label = labels[rows.key[0]]
        able = f"{access.removesuffix('e')}able"
        yield from _joined(rows, (access, f"{label}_{asks}", 0, 1), (f"{label}_{answers}", able, 1, 0))


def _joined(rows: RegularRows, *joints: tuple[str, str, int, int]) -> Iterator[str]:
    """Yield assignments of bits: of which signal to which, and the numbers of their bits in the rows."""
    is_vector = rows.are_parts(range(len(rows.first)))
    bit = rows.part if is_vector else rows.text
    if not is_vector:
        yield f"    for (i = 0; i < {rows.count}; i = i + 1) begin"
    for result, signal, place, other in joints:
        yield f"{'' if is_vector else '    '}    assign {result}[{bit(place)}] = {signal}[{bit(other)}];"
    if not is_vector:
        yield "    end"


def _barriers(blocks: tuple[tuple[int, ...], ...], signals: Signals) -> Iterator[str]:
    yield ""
    yield "    // barriers: whether all nodes of the blocks before one have ended"
    for block, nodes in enumerate(blocks[:-1], 1):
        awaited = [f"passed_{block - 1}"] if block > 1 else []
        awaited += [signals.ended(family, width, str(first)) for family, width, first in signals.spans(nodes)]
        yield from _wrapped(f"wire passed_{block} = {_all(awaited)};", "    ")


def _waits(circuit: Circuit, signals: Signals) -> Iterator[str]:
    """Yield what nodes wait for: those of equal waits, or of such that move on evenly, in a loop."""
    yield ""
    yield "    // what tasks and buffers wait for"
    found = []
    for node, one in enumerate(circuit.waits):
        family, number = signals.node(node)
        spans = signals.spans(one.nodes)
        alike = [value for awaited, width, _ in spans for value in (awaited, width)]
        found.append(((family, one.block, *alike), (number, *(first for *_, first in spans))))
    for rows in regular_rows(found):
        family, block, *alike = rows.key
        rows_awaited = list(enumerate(zip(alike[::2], alike[1::2], strict=True), 1))
        common = [place for place, _ in rows_awaited if not rows.steps[place]]
        is_vector = rows.are_parts({0, *(place for place, _ in rows_awaited)} - {*common})
        is_vector &= all(width == 1 or place in common for place, (_, width) in rows_awaited)
        bit = rows.part if is_vector else rows.text
        for_all = [signals.ended(*of_family, rows.text(place)) for place, of_family in rows_awaited if place in common]
        for_all += [f"passed_{block}"] if block else []
        # Buffers and barriers alone may wait in a circle: it begins from 0, as all that rises in a cycle.
        for_all += ["go"] if family == len(circuit.families) and (alike or block) else []
        own = [signals.ended(*of_family, bit(place)) for place, of_family in rows_awaited if place not in common]
        if is_vector and rows.count > 1:
            awaited = " & ".join([*own, f"{{{rows.count}{{{_all(for_all)}}}}}"] if for_all or not own else own)
        else:
            awaited = _all([*own, *for_all])
        label = signals.labels[family]
        result = f"{label}_{'may_run' if family < len(circuit.families) else 'ended'}[{bit(0)}]"
        if not is_vector:
            yield f"    for (i = 0; i < {rows.count}; i = i + 1)"
        yield from _wrapped(f"assign {result} = {awaited};", "    " if is_vector else "        ")


def _all(signals: list[str]) -> str:
    return f"&{{{', '.join(signals)}}}" if signals else _YES


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ", break_long_words=False)
