"""The top module of a circuit as SystemVerilog: families of tasks as loops, FIFOs between them, who waits for whom."""

import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from dfcompile.host.printable import printable
from dfcompile.rtl.circuit import Circuit, Family, Fifo
from dfcompile.rtl.regular_rows import regular_rows

_OF_FAMILIES = ("may_run", "moving", "ended", "pull", "available", "push", "space")
_WIDTH = 120  # of a line
_PORTS = """\
    parameter REGISTERED = 0,  // 1: both ends of a FIFO see registers alone; 0: it passes through
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
    yield "    genvar i;"
    for label, family in zip(signals.labels, circuit.families, strict=False):
        yield from _tasks(label, family)
    memory = len(circuit.waits) - circuit.tasks
    if memory:
        yield ""
        yield "    // buffers, and the ends of the graph"
        yield f"    wire [{memory - 1}:0] memory_ended;"
    tasks, nodes = signals.labels[:-1], signals.labels if memory else signals.labels[:-1]
    yield ""
    for result, sign, words in (
        ("moves", "|", [f"{label}_moving" for label in tasks] or [_NO]),
        ("ended", "&", [f"{label}_ended" for label in nodes] or [_YES]),
    ):
        yield from _wrapped(f"assign {result} = {sign}{{{', '.join(words)}}};", "    ")
    yield from _fifos(circuit.fifos, signals)
    places = [signals.pull(port) for port in circuit.loads], [signals.push(port) for port in circuit.stores]
    yield from _memory(("load", "pull", "available"), places[0], signals.labels)
    yield from _memory(("store", "push", "space"), places[1], signals.labels)
    if circuit.blocks:
        yield from _barriers(circuit.blocks, signals)
    yield from _waits(circuit, signals)


_NO, _YES = "1'b0", "1'b1"


def _tasks(label: str, family: Family) -> Iterator[str]:
    count = family.count
    yield ""
    yield f"    // tasks of {printable(family.scope)}"
    yield f"    wire [{count - 1}:0] {label}_may_run, {label}_moving, {label}_ended;"
    ports = (("pull", "available", family.inputs), ("push", "space", family.outputs))
    for asks, answers, width in ports:
        if width:
            yield f"    wire [{width * count - 1}:0] {label}_{asks}, {label}_{answers};"
    yield f"    for (i = 0; i < {count}; i = i + 1) begin : {label}"
    shape = f".READS({family.reads}), .WRITES({family.writes})"
    shape += f", .INPUTS({max(family.inputs, 1)}), .OUTPUTS({max(family.outputs, 1)})"
    yield f"        dataflow_task #({shape}) one ("
    yield f"            .clk(clk), .reset(reset), .go(go), .may_run({label}_may_run[i]),"
    for asks, answers, width in ports:
        bits = "i" if width == 1 else f"{width} * i +: {width}"
        asked, answered = (f"{label}_{asks}[{bits}]", f"{label}_{answers}[{bits}]") if width else ("", _YES)
        yield f"            .{asks}({asked}), .{answers}({answered}),"
    yield f"            .moves({label}_moving[i]), .ended({label}_ended[i])"
    yield "        );"
    yield "    end"


def _fifos(fifos: Iterable[Fifo], signals: _Signals) -> Iterator[str]:
    yield ""
    yield "    // FIFOs"
    found = []
    for fifo in fifos:
        (source, push), (target, pull) = signals.push(fifo.push), signals.pull(fifo.pull)
        found.append(((source, target, fifo.capacity), (push, pull)))
    for number, rows in enumerate(regular_rows(found)):
        writer, reader = (signals.labels[family] for family in rows.key[:2])
        place, other = rows.text(0), rows.text(1)
        yield f"    for (i = 0; i < {rows.count}; i = i + 1) begin : fifos_{number}"
        yield f"        fifo #(.REGISTERED(REGISTERED), .CAPACITY({rows.key[2]} + EXTRA)) one ("
        yield f"            .clk(clk), .reset(reset), .push({writer}_push[{place}]), .space({writer}_space[{place}]),"
        yield f"            .pull({reader}_pull[{other}]), .available({reader}_available[{other}])"
        yield "        );"
        yield "    end"


def _memory(words: tuple[str, str, str], places: list[tuple[int, int]], labels: list[str]) -> Iterator[str]:
    access, asks, answers = words
    yield ""
    yield f"    // {access}s"
    if not places:
        yield f"    assign {access} = {_NO};"
    for rows in regular_rows([((family,), (mine, port)) for mine, (family, port) in enumerate(places)]):
        bit, place, label = rows.text(0), rows.text(1), labels[rows.key[0]]
        yield f"    for (i = 0; i < {rows.count}; i = i + 1) begin : {access}s_{rows.first[0]}"
        yield f"        assign {access}[{bit}] = {label}_{asks}[{place}];"
        yield f"        assign {label}_{answers}[{place}] = {access.removesuffix('e')}able[{bit}];"
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
        awaited = [
            signals.ended(other, width, rows.text(place))
            for place, (other, width) in enumerate(zip(alike[::2], alike[1::2], strict=True), 1)
        ]
        awaited += [f"passed_{block}"] if block else []
        label = signals.labels[family]
        result = f"{label}_{'may_run' if family < len(circuit.families) else 'ended'}[{rows.text(0)}]"
        is_loop = rows.count > 1
        if is_loop:
            yield f"    for (i = 0; i < {rows.count}; i = i + 1)"
        yield from _wrapped(f"assign {result} = {_all(awaited)};", "        " if is_loop else "    ")


def _all(signals: list[str]) -> str:
    return f"&{{{', '.join(signals)}}}" if signals else _YES


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ", break_long_words=False)
