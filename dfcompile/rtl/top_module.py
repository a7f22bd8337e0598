"""The top module of a circuit as SystemVerilog: families of tasks as loops, FIFOs between them, who waits for whom."""

import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from dfcompile.host.printable import printable
from dfcompile.rtl.circuit import Circuit, Family, Fifo
from dfcompile.rtl.regular_rows import RegularRows, regular_rows

_OF_FAMILIES = ("may_run", "ended", "pull", "available", "push", "space", "leave")
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
    output wire ended      // all has been done
);"""


def identifier(name: str, taken: set[str], *, prefix: str = "") -> str:
    """Return a name for Verilog like another one; it, and the names of its signals, are taken from then on."""
    plain = prefix + re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = plain if plain[:1].isalpha() else f"n{plain}"
    found, number = plain, 2
    while not taken.isdisjoint(_names(found)):
        found, number = f"{plain}_{number}", number + 1
    taken.update(_names(found))
    return found


def _names(label: str) -> list[str]:
    return [label, *(f"{label}_{signal}" for signal in _OF_FAMILIES)]


def top_module(name: str, title: str, circuit: Circuit) -> str:
    """Return the module of a circuit.

    Args:
        name: of the module.
        title: says in a line what it is a circuit of.
        circuit: the hardware.
    """
    ports = _PORTS.format(loads=max(len(circuit.loads), 1) - 1, stores=max(len(circuit.stores), 1) - 1)
    return "\n".join(
        (f"// A circuit of {printable(title)}.", f"module {name} #(", ports, *_body(circuit), "endmodule", "")
    )


class _Signals:
    """Names of the signals: each family has vectors of its own, with a bit for each task, or for each port."""

    def __init__(self, circuit: Circuit) -> None:
        families, taken = circuit.families, set[str]()
        # No keyword and no other signal begins like these.
        self.labels = [*(identifier(family.scope, taken, prefix="t_") for family in families), "memory"]
        self._nodes = [*(family.first for family in families), circuit.tasks]
        self._pulls = [family.first_pull for family in families]
        self._pushes = [family.first_push for family in families]

    def node(self, number: int) -> tuple[int, int]:
        """Return the family of a node, of memory the one behind the last, and its number in it."""
        return _place(self._nodes, number)

    def pull(self, port: int) -> tuple[int, int]:
        """Return the family of a reading port, and its number in it."""
        return _place(self._pulls, port)

    def push(self, port: int) -> tuple[int, int]:
        """Return the family of a writing port, and its number in it."""
        return _place(self._pushes, port)

    def spans(self, nodes: Iterable[int]) -> list[tuple[int, int, int]]:
        """Return nodes as rows in one family: the family, how many follow one another, and the first one."""
        spans: list[tuple[int, int, int]] = []
        for family, number in map(self.node, nodes):
            if spans and spans[-1][0] == family and sum(spans[-1][1:]) == number:
                spans[-1] = (family, spans[-1][1] + 1, spans[-1][2])
            else:
                spans.append((family, 1, number))
        return spans

    def ended(self, family: int, width: int, first: str) -> str:
        """Return whether nodes that follow one another have ended, a bit for each."""
        return f"{self.labels[family]}_ended[{first}{f' +: {width}' if width > 1 else ''}]"


def _place(firsts: list[int], number: int) -> tuple[int, int]:
    place = bisect_right(firsts, number) - 1
    return place, number - firsts[place]


def _body(circuit: Circuit) -> Iterator[str]:
    signals = _Signals(circuit)
    groups = _groups(circuit.fifos, signals)
    yield "    genvar i;"
    yield f"    localparam HOP = {circuit.hardware.hop_cycles} + REGISTERED;  // cycles through a FIFO, there and back"
    most = max((max(family.inputs, family.outputs, 1) for family in circuit.families), default=1)
    yield f"    localparam PORTS = {circuit.hardware.ports or most};  // inputs that a task reads in a cycle; outputs"
    parts = len(circuit.families) + len(groups)
    if parts:
        yield f"    wire [{parts - 1}:0] moving;"
    for number, (label, family) in enumerate(zip(signals.labels, circuit.families, strict=False)):
        yield from _tasks(number, label, family)
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


_NO, _YES = "1'b0", "1'b1"


def _tasks(number: int, label: str, family: Family) -> Iterator[str]:
    count = family.count
    yield ""
    yield f"    // tasks of {printable(family.scope)}"
    yield f"    wire [{count - 1}:0] {label}_may_run, {label}_ended;"
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
    yield f"        .moves(moving[{number}]), .ended({label}_ended)"
    yield "    );"


_Group: TypeAlias = tuple[int, int, int]  # families of writers and of readers, and capacity of the FIFOs between


def _groups(fifos: Iterable[Fifo], signals: _Signals) -> dict[_Group, list[tuple[int, int]]]:
    """Return the ports of FIFOs, each in its family, that are one vector of FIFOs."""
    groups: dict[_Group, list[tuple[int, int]]] = {}
    for fifo in fifos:
        (source, push), (target, pull) = signals.push(fifo.push), signals.pull(fifo.pull)
        groups.setdefault((source, target, fifo.capacity), []).append((push, pull))
    return groups


def _fifos(numbers: tuple[int, int], key: _Group, ports: list[tuple[int, int]], signals: _Signals) -> Iterator[str]:
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


def _barriers(blocks: tuple[tuple[int, ...], ...], signals: _Signals) -> Iterator[str]:
    yield ""
    yield "    // barriers: whether all nodes of the blocks before one have ended"
    for block, nodes in enumerate(blocks[:-1], 1):
        awaited = [f"passed_{block - 1}"] if block > 1 else []
        awaited += [signals.ended(family, width, str(first)) for family, width, first in signals.spans(nodes)]
        yield from _wrapped(f"wire passed_{block} = {_all(awaited)};", "    ")


def _waits(circuit: Circuit, signals: _Signals) -> Iterator[str]:
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
