"""The top module of a circuit as SystemVerilog: families of tasks as loops, FIFOs between them, who waits for whom."""

import re
import textwrap
from collections.abc import Iterable, Iterator

from dfcompile.host.printable import printable
from dfcompile.rtl.circuit import Circuit, Family, Fifo, Waits
from dfcompile.rtl.regular_rows import RegularRows, regular_rows

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


def identifier(name: str, taken: set[str]) -> str:
    """Return a name for Verilog like another one, and add it to those that are taken."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = plain if plain[:1].isalpha() else f"n{plain}"
    found, number = plain, 2
    while found in taken:
        found, number = f"{plain}_{number}", number + 1
    taken.add(found)
    return found


def top_module(name: str, title: str, circuit: Circuit) -> str:
    """Return the module of a circuit.

    Args:
        name: of the module.
        title: says in a line what it is a circuit of.
        circuit: the hardware.
    """
    ports = _PORTS.format(loads=max(len(circuit.loads), 1) - 1, stores=max(len(circuit.stores), 1) - 1)
    return "\n".join((f"// A circuit of {printable(title)}.", f"module {name} #(", ports, *_body(circuit), "endmodule", ""))


def _body(circuit: Circuit) -> Iterator[str]:
    sizes = {
        **dict.fromkeys(("may_run", "moving"), circuit.tasks),
        "has_ended": len(circuit.waits),
        **dict.fromkeys(("pull", "available"), circuit.pulls),
        **dict.fromkeys(("push", "space"), circuit.pushes),
    }
    for name, size in sizes.items():
        yield f"    wire [{max(size, 1) - 1}:0] {name};"
    yield f"    assign moves = {'|moving' if circuit.tasks else _NO};"
    yield f"    assign ended = {'&has_ended' if circuit.waits else _YES};"
    yield "    genvar i;"
    taken: set[str] = set()
    for family in circuit.families:
        yield from _tasks(identifier(f"tasks_{family.scope}", taken), family)
    yield from _fifos(circuit.fifos)
    yield from _memory("load", "pull", "available", circuit.loads)
    yield from _memory("store", "push", "space", circuit.stores)
    if circuit.blocks:
        yield from _barriers(circuit.blocks)
    yield from _waits("what tasks wait for", "may_run", 0, circuit.waits[: circuit.tasks])
    yield from _waits("buffers, and the ends of the graph", "has_ended", circuit.tasks, circuit.waits[circuit.tasks :])


_NO, _YES = "1'b0", "1'b1"


def _tasks(label: str, family: Family) -> Iterator[str]:
    ports = (family.first, family.first_pull, family.first_push), (1, family.inputs, family.outputs)
    rows = RegularRows((), *ports, family.count)
    task = rows.text(0)
    yield ""
    yield f"    // tasks of {printable(family.scope)}"
    yield f"    for (i = 0; i < {family.count}; i = i + 1) begin : {label}"
    shape = f".READS({family.reads}), .WRITES({family.writes})"
    yield f"        dataflow_task #({shape}, .INPUTS({max(family.inputs, 1)}), .OUTPUTS({max(family.outputs, 1)})) one ("
    yield f"            .clk(clk), .reset(reset), .go(go), .may_run(may_run[{task}]),"
    for asks, answers, place, width in (("pull", "available", 1, family.inputs), ("push", "space", 2, family.outputs)):
        ports = f"[{rows.text(place)} +: {width}]"
        asked, answered = (f"{asks}{ports}", f"{answers}{ports}") if width else ("", _YES)  # nothing holds it up
        yield f"            .{asks}({asked}), .{answers}({answered}),"
    yield f"            .moves(moving[{task}]), .ended(has_ended[{task}])"
    yield "        );"
    yield "    end"


def _fifos(fifos: Iterable[Fifo]) -> Iterator[str]:
    yield ""
    yield "    // FIFOs"
    for rows in regular_rows([((fifo.capacity,), (fifo.push, fifo.pull)) for fifo in fifos]):
        push, pull = rows.text(0), rows.text(1)
        yield f"    for (i = 0; i < {rows.count}; i = i + 1) begin : fifos_{rows.first[1]}"
        yield f"        fifo #(.REGISTERED(REGISTERED), .CAPACITY({rows.key[0]} + EXTRA)) one ("
        yield f"            .clk(clk), .reset(reset), .push(push[{push}]), .space(space[{push}]),"
        yield f"            .pull(pull[{pull}]), .available(available[{pull}])"
        yield "        );"
        yield "    end"


def _memory(access: str, asks: str, answers: str, ports: Iterable[int]) -> Iterator[str]:
    yield ""
    yield f"    // {access}s"
    rows = list(regular_rows([((), row) for row in enumerate(ports)]))
    if not rows:
        yield f"    assign {access} = {_NO};"
    for one in rows:
        mine, port = one.text(0), one.text(1)
        yield f"    for (i = 0; i < {one.count}; i = i + 1) begin : {access}s_{one.first[0]}"
        yield f"        assign {access}[{mine}] = {asks}[{port}];"
        yield f"        assign {answers}[{port}] = {access.removesuffix('e')}able[{mine}];"
        yield "    end"


def _barriers(blocks: tuple[tuple[int, ...], ...]) -> Iterator[str]:
    yield ""
    yield "    // barriers: whether all nodes of the blocks before one have ended"
    for block, nodes in enumerate(blocks[:-1], 1):
        awaited = [f"passed_{block - 1}"] if block > 1 else []
        awaited += [_ended(str(begin), width) for begin, width in _spans(nodes)]
        yield from _wrapped(f"wire passed_{block} = {_all(awaited)};", "    ")


def _waits(title: str, result: str, first: int, waits: tuple[Waits, ...]) -> Iterator[str]:
    """Yield what some nodes wait for: those of equal waits, or of such that move on evenly, in a loop."""
    if waits:
        yield ""
        yield f"    // {title}"
    found = []
    for number, one in enumerate(waits):
        spans = _spans(one.nodes)
        widths, begins = [width for _, width in spans], [begin for begin, _ in spans]
        found.append(((one.block, *widths), (first + number, *begins)))
    for rows in regular_rows(found):
        block, *widths = rows.key
        awaited = [_ended(rows.text(place), width) for place, width in enumerate(widths, 1)]
        awaited += [f"passed_{block}"] if block else []
        is_loop = rows.count > 1
        if is_loop:
            yield f"    for (i = 0; i < {rows.count}; i = i + 1)"
        text = f"assign {result}[{rows.text(0)}] = {_all(awaited)};"
        yield from _wrapped(text, "        " if is_loop else "    ")


def _spans(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return where numbers that follow one another begin, and how many they are."""
    rows = regular_rows([((), (number,)) for number in numbers])
    spans: list[tuple[int, int]] = []
    for row in rows:
        step = row.steps[0] if row.count > 1 else 1
        spans += [(row.first[0], row.count)] if step == 1 else [(row.first[0] + step * i, 1) for i in range(row.count)]
    return spans


def _ended(begin: str, width: int) -> str:
    return f"has_ended[{begin}]" if width == 1 else f"has_ended[{begin} +: {width}]"


def _all(signals: list[str]) -> str:
    return f"&{{{', '.join(signals)}}}" if signals else _YES


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ", break_long_words=False)
