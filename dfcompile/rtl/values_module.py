"""The module that computes what a family of tasks writes, beside the module that says when it reads and writes."""

from collections.abc import Iterator, Sequence

from dfcompile.host.printable import printable
from dfcompile.rtl.arithmetic import WORD_BITS, Statements, declared, from_word, to_word
from dfcompile.rtl.circuit import Family
from dfcompile.rtl.datapath import Computation

PLACE_BITS = 32
_STEP = "    "


def word_bits(one: Computation) -> int:
    """Return the width of what a family has for each of its inputs."""
    return max((WORD_BITS[operand.dtype] for operand in one.operands), default=1)


def values_module(name: str, family: Family, one: Computation) -> str:
    """Return the module of what a family computes.

    Args:
        name: of the module.
        family: of tasks.
        one: what they compute.
    """
    ports = max(family.count * family.inputs, 1)
    head = f"""\
// Values of tasks of {printable(family.scope)}: {printable(one.text.partition(": ")[2])}.
module {name} (
    input  wire clk,
    input  wire reset,
    input  wire [{ports - 1}:0] takes,  // takes the next element of an input
    input  wire [{family.count - 1}:0] reads,   // has taken those of all inputs
    input  wire [{family.count - 1}:0] writes,  // has written an element
    input  wire [{word_bits(one) * ports - 1}:0] words,   // the next element of each input
    output reg  [{PLACE_BITS * ports - 1}:0] places,  // where in memory it is
    output reg  [{WORD_BITS[one.dtype] * family.count - 1}:0] value,  // the next element that is written
    output reg  [{PLACE_BITS * family.count - 1}:0] place,  // where in memory it belongs
    output reg  [{family.count - 1}:0] finals  // it has become complete
);"""
    return "\n".join((head, *(f"{_STEP}{line}" for line in _body(family, one)), "endmodule", ""))


def _body(family: Family, one: Computation) -> Iterator[str]:
    count, ports, width = family.count, family.count * family.inputs, word_bits(one)
    statements, computed = one.statements()
    yield "import arithmetic::*;"
    tables = {f"FIRST_{at}": operand.first for at, operand in enumerate(one.operands) if operand.is_stored}
    tables |= {f"START_{name}": start for name, start in one.start.items()} | {"FIRST": one.first}
    turns = {f"TURN_{at}": operand.turn for at, operand in enumerate(one.operands) if not operand.is_in_turn}
    for label, numbers in (tables | turns).items():
        if len(set(numbers)) > 1:
            yield from _table(label, numbers)
    is_streamed = not all(operand.is_stored for operand in one.operands)
    if is_streamed:
        yield f"reg [{width - 1}:0] held[0:{ports - 1}];"
    yield f"integer k, m, t{''.join(f', i{loop}[0:{count - 1}]' for loop in _moving(one))};"
    yield from (declared(f"x_{operand.variable}", operand.dtype) for operand in one.operands)
    yield from (declared(f"at_{name}", "int64") for name in one.start)
    yield from statements.variables
    if one.combined:
        yield declared("sums", one.dtype, f"[0:{count * one.kept - 1}]")
    yield declared("result", one.dtype)
    if one.at_once > 1:
        yield f"integer last, head[0:{count - 1}];"
        yield f"reg [{WORD_BITS[one.dtype] - 1}:0] ready[0:{count * one.at_once - 1}];  // complete, to be written"
        yield f"integer belongs[0:{count * one.at_once - 1}];"
    if is_streamed:
        yield "always @(posedge clk)"
        yield "    if (|takes)"
        yield f"        for (k = 0; k < {ports}; k = k + 1)"
        yield "            if (takes[k])"
        yield f"                held[k] = words[k * {width} +: {width}];"
    yield "always @(negedge clk) begin"
    yield "    finals <= 0;"
    yield "    if (reset) begin"
    yield f"        for (t = 0; t < {count}; t = t + 1) begin"
    yield from (f"            i{loop}[t] = 0;" for loop in _moving(one))
    yield from (f"            {line}" for line in _next_places(family, one))
    yield "        end"
    yield "    end else if (|(reads | writes))"
    yield f"        for (t = 0; t < {count}; t = t + 1) begin"
    yield from (f"            {line}" for line in _step(family, one, statements, computed))
    yield "        end"
    yield "end"


def _step(family: Family, one: Computation, statements: Statements, computed: str) -> Iterator[str]:
    """Yield what a task does at the end of a cycle."""
    if one.at_once > 1:
        yield "if (writes[t])"
        yield "    head[t] = head[t] + 1;"
    yield "if (reads[t]) begin"
    if one.at_once > 1:
        yield "    last = 0;"
    yield f"    for (m = 0; m < {one.per_read}; m = m + 1) begin"
    inner: list[str] = []
    for at, operand in enumerate(one.operands):
        inner.append(f"x_{operand.variable} = {from_word(_word(family, one, at), operand.dtype)};")
    starts = one.start.items()
    inner += [f"at_{name} = {_sum(_number(f'START_{name}', start), _loop(one, name))};" for name, start in starts]
    inner += [*statements.lines, *_accumulation(one, statements, computed)]
    inner += _advance(_moving(one)[::-1], one)
    yield from (f"        {line}" for line in inner)
    yield "    end"
    if one.at_once > 1:
        yield "    if (last > 0)"
        yield "        head[t] = 0;"
    yield from (f"    {line}" for line in _next_places(family, one))
    yield "end"
    if one.at_once > 1:
        bits = WORD_BITS[one.dtype]
        yield f"value[t * {bits} +: {bits}] <= ready[t * {one.at_once} + head[t] % {one.at_once}];"
        yield f"place[t * {PLACE_BITS} +: {PLACE_BITS}] <= belongs[t * {one.at_once} + head[t] % {one.at_once}];"


def _accumulation(one: Computation, statements: Statements, computed: str) -> Iterator[str]:
    loops = [loop for loop in _moving(one) if loop in one.combined]
    yield f"result = {computed};"
    if loops:
        begun = [loop for loop in _moving(one) if one.strides[loop] and loop > min(loops)] if one.kept > 1 else []
        at = _linear(begun, one)
        sofar = f"sums[t * {one.kept}{at}]"
        if one.reduction is not None:
            yield f"if ({' || '.join(f'i{loop}[t] != 0' for loop in loops)})"
            yield f"    result = {statements.combined(one.reduction, sofar, 'result', one.dtype)};"
        yield f"{sofar} = result;"
        yield f"if ({' && '.join(f'i{loop}[t] == {one.loops[loop][1] - 1}' for loop in loops)}) begin"
    else:
        yield "begin"
    bits, place = WORD_BITS[one.dtype], _sum(_number("FIRST", one.first), _offset(one.strides, one))
    word = to_word("result", one.dtype)
    if one.at_once > 1:
        yield f"    ready[t * {one.at_once} + last] = {word};"
        yield f"    belongs[t * {one.at_once} + last] = {place};"
        yield "    last = last + 1;"
    else:
        yield f"    value[t * {bits} +: {bits}] <= {word};"
        yield f"    place[t * {PLACE_BITS} +: {PLACE_BITS}] <= {place};"
        yield "    finals[t] <= 1;"
    yield "end"


def _word(family: Family, one: Computation, at: int) -> str:
    """Return the word of an operand in iteration ``m`` of a read of task ``t``.

    Memory may be read in the cycle in which the last element is written, so it is seen after that.
    """
    operand = one.operands[at]
    edges, count = len(operand.turn), family.count
    if operand.is_stored:
        return f"words[({at * count} + t) * {word_bits(one)} +: {WORD_BITS[operand.dtype]}]"
    turn = "m" if operand.is_in_turn else f"TURN_{at}[{PLACE_BITS} * m +: {PLACE_BITS}]"
    return f"held[({at * edges} + {turn}) * {count} + t]" if edges > 1 else f"held[{at * count} + t]"


def _moving(one: Computation) -> list[int]:
    """Return the loops of more than one iteration."""
    return [loop for loop, (_, extent) in enumerate(one.loops) if extent > 1]


def _loop(one: Computation, name: str) -> list[str]:
    return [f"i{loop}[t]" for loop in _moving(one) if one.loops[loop][0] == name]


def _advance(loops: Sequence[int], one: Computation) -> list[str]:
    """Return what makes loops, inner to outer, go on to the next iteration."""
    if not loops:
        return []
    loop, *outer = loops
    index, end = f"i{loop}[t]", one.loops[loop][1] - 1
    lines = [f"if ({index} != {end})", f"    {index} = {index} + 1;", "else begin", f"    {index} = 0;"]
    return [*lines, *(f"    {line}" for line in _advance(outer, one)), "end"]


def _next_places(family: Family, one: Computation) -> Iterator[str]:
    """Yield where the elements of the next iteration are that come from memory."""
    for at, operand in enumerate(one.operands):
        if operand.is_stored:
            place = _sum(_number(f"FIRST_{at}", operand.first), _offset(operand.strides, one))
            yield f"places[({at * family.count} + t) * {PLACE_BITS} +: {PLACE_BITS}] <= {place};"


def _offset(strides: Sequence[int], one: Computation) -> list[str]:
    return [f"{strides[loop]} * i{loop}[t]" for loop in _moving(one) if strides[loop]]


def _linear(loops: Sequence[int], one: Computation) -> str:
    """Return the number of an iteration of some loops, row by row, behind a plus."""
    terms, stride = [], 1
    for loop in reversed(loops):
        terms.append(f" + {stride} * i{loop}[t]")
        stride *= one.loops[loop][1]
    return "".join(terms)


def _sum(first: str, terms: Sequence[str]) -> str:
    return " + ".join((first, *terms))


def _number(label: str, numbers: Sequence[int]) -> str:
    """Return the number of task ``t``."""
    return str(numbers[0]) if len(set(numbers)) == 1 else f"$signed({label}[{PLACE_BITS} * t +: {PLACE_BITS}])"


def _table(label: str, numbers: Sequence[int]) -> Iterator[str]:
    """Yield a constant of 32 bits for each number."""
    yield f"localparam [{PLACE_BITS * len(numbers) - 1}:0] {label} = {{"
    for end in range(len(numbers), 0, -8):
        row = ", ".join(f"32'd{number % 2**PLACE_BITS}" for number in reversed(numbers[max(end - 8, 0) : end]))
        yield f"    {row}{',' if end > 8 else ''}"
    yield "};"
