"""The module that computes what a family of tasks writes, beside the module that says when it reads and writes."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from dfcompile.host.printable import printable
from dfcompile.records import replace
from dfcompile.rtl.arithmetic import WORD_BITS, Statements, declared, from_word, to_word
from dfcompile.rtl.circuit import Family
from dfcompile.rtl.datapath import Computation

NUMBER_BITS = 32  # of a constant for each task
_STEP = "    "


def word_bits(one: Computation) -> int:
    """Return the width of what a family has for each of its inputs."""
    return max((WORD_BITS[operand.dtype] for operand in one.operands), default=1)


def place_bits(one: Computation) -> int:
    """Return the width of a place in memory that a family reads or writes."""
    accesses = [(one.first, one.strides), *((operand.first, operand.strides) for _, operand in one.stored)]
    return max(_largest(first, strides, one).bit_length() for first, strides in accesses) or 1


def values_module(name: str, family: Family, one: Computation, *, apart: bool = False) -> str:
    """Return the module of what a family computes.

    Args:
        name: of the module.
        family: of tasks.
        one: what they compute.
        apart: it is one task, which takes from ports where it begins; else all tasks, which simulators like better.
    """
    own = task_numbers(one) if apart else ()
    begins = "".join(f"    input  wire [{NUMBER_BITS - 1}:0] {label},\n" for label in own)
    family = replace(family, count=1) if apart else family
    ports, stored = max(family.count * family.inputs, 1), family.count * len(one.stored)
    where = f"\n    output reg  [{place_bits(one) * stored - 1}:0] places,  // where in memory it is"
    head = f"""\
// Values of tasks of {printable(family.scope)}: {printable(one.text.partition(": ")[2])}.
module {name} (
    input  wire clk,
    input  wire reset,
{begins}    input  wire [{ports - 1}:0] takes,  // takes the next element of an input
    input  wire [{family.count - 1}:0] reads,   // has taken those of all inputs
    input  wire [{family.count - 1}:0] writes,  // has written an element
    input  wire [{word_bits(one) * ports - 1}:0] words,   // the next element of each input{where if stored else ""}
    output reg  [{WORD_BITS[one.dtype] * family.count - 1}:0] value,  // the next element that is written
    output reg  [{place_bits(one) * family.count - 1}:0] place,  // where in memory it belongs
    output reg  [{family.count - 1}:0] finals  // it has become complete
);"""
    return "\n".join((head, *(f"{_STEP}{line}" for line in _body(family, one, apart=apart)), "endmodule", ""))


def task_numbers(one: Computation) -> dict[str, Sequence[int]]:
    """Return the constants that differ from task to task, by name."""
    tables = {f"FIRST_{at}": operand.first for at, operand in one.stored}
    tables |= {f"START_{name}": start for name, start in one.start.items()} | {"FIRST": one.first}
    return {label: numbers for label, numbers in tables.items() if len(set(numbers)) > 1}


def _body(family: Family, one: Computation, *, apart: bool) -> Iterator[str]:
    count, ports, width = family.count, family.count * family.inputs, word_bits(one)
    statements, computed = one.statements()
    turns = {f"TURN_{at}": operand.turn for at, operand in enumerate(one.operands) if not operand.is_in_turn}
    for label, numbers in (turns if apart else task_numbers(one) | turns).items():
        yield from number_table(label, numbers)
    is_streamed = len(one.stored) < len(one.operands)
    if is_streamed:
        yield f"reg [{width - 1}:0] held[0:{ports - 1}];"
        yield f"reg [{ports - 1}:0] taken;"
        yield f"reg [{width * ports - 1}:0] arriving;"
    yield "integer k, m, t;"
    for loop in _moving(one):
        yield f"reg [{(one.loops[loop][1] - 1).bit_length() - 1}:0] i{loop}[0:{count - 1}];"
    for number in range(len(one.stored)):
        yield f"reg [{place_bits(one) - 1}:0] source_{number}[0:{count - 1}];  // where the next element is"
    yield f"reg [{place_bits(one) - 1}:0] target[0:{count - 1}];  // where the element that is made belongs"
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
        yield "always @(posedge clk) begin"
        yield "    taken <= takes;"
        yield "    arriving <= words;"
        yield "end"
    yield "always @(negedge clk) begin"
    if is_streamed:
        yield "    if (|taken)"
        yield f"        for (k = 0; k < {ports}; k = k + 1)"
        yield "            if (taken[k])"
        yield f"                held[k] = arriving[k * {width} +: {width}];"
    yield "    finals <= 0;"
    yield "    if (reset) begin"
    yield f"        for (t = 0; t < {count}; t = t + 1) begin"
    yield from (f"            i{loop}[t] = 0;" for loop in _moving(one))
    for where, first, _ in _walked(one):
        yield f"            {where} = {first};"
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
    inner += _advance(_moving(one)[::-1], one, _walked(one))
    yield from (f"        {line}" for line in inner)
    yield "    end"
    yield from (f"    {line}" for line in _next_places(family, one))
    if one.at_once > 1:
        yield "    if (last > 0)"
        yield "        head[t] = 0;"
    yield "end"
    if one.at_once > 1:
        bits, width = WORD_BITS[one.dtype], place_bits(one)
        yield f"value[t * {bits} +: {bits}] <= ready[t * {one.at_once} + head[t] % {one.at_once}];"
        yield f"place[t * {width} +: {width}] <= belongs[t * {one.at_once} + head[t] % {one.at_once}];"


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
    bits, width = WORD_BITS[one.dtype], place_bits(one)
    word = to_word("result", one.dtype)
    if one.at_once > 1:
        yield f"    ready[t * {one.at_once} + last] = {word};"
        yield f"    belongs[t * {one.at_once} + last] = target[t];"
        yield "    last = last + 1;"
    else:
        yield f"    value[t * {bits} +: {bits}] <= {word};"
        yield f"    place[t * {width} +: {width}] <= target[t];"
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
    turn = "m" if operand.is_in_turn else f"TURN_{at}[{NUMBER_BITS} * m +: {NUMBER_BITS}]"
    return f"held[({at * edges} + {turn}) * {count} + t]" if edges > 1 else f"held[{at * count} + t]"


def _moving(one: Computation) -> list[int]:
    """Return the loops of more than one iteration."""
    return [loop for loop, (_, extent) in enumerate(one.loops) if extent > 1]


def _loop(one: Computation, name: str) -> list[str]:
    return [f"i{loop}[t]" for loop in _moving(one) if one.loops[loop][0] == name]


_Walk: TypeAlias = tuple[str, str, Sequence[int]]  # a place in memory: its variable, where it begins, its strides


def _walked(one: Computation) -> list[_Walk]:
    """Return the places in memory that move from iteration to iteration."""
    walks = [
        (f"source_{number}[t]", _number(f"FIRST_{at}", operand.first), operand.strides)
        for number, (at, operand) in enumerate(one.stored)
    ]
    return [*walks, ("target[t]", _number("FIRST", one.first), one.strides)]


def _next_places(family: Family, one: Computation) -> Iterator[str]:
    """Yield what asks memory for the next elements; not at once, as what comes for these places is still read."""
    width = place_bits(one)
    for number in range(len(one.stored)):
        yield f"places[({number * family.count} + t) * {width} +: {width}] <= source_{number}[t];"


def _advance(loops: Sequence[int], one: Computation, walks: Sequence[_Walk], inner: Sequence[int] = ()) -> list[str]:
    """Return what makes loops, inner to outer, go on to the next iteration, and places with them."""
    if not loops:
        return []
    loop, *outer = loops
    index, end = f"i{loop}[t]", one.loops[loop][1] - 1
    lines = [f"if ({index} != {end}) begin", f"    {index} = {index} + 1;"]
    for where, _, strides in walks:
        step = strides[loop] - sum(strides[back] * (one.loops[back][1] - 1) for back in inner)
        if step:
            lines.append(f"    {where} = {where} {'-' if step < 0 else '+'} {abs(step)};")
    further = _advance(outer, one, walks, (*inner, loop))
    return [*lines, "end else begin", f"    {index} = 0;", *(f"    {line}" for line in further), "end"]


def _largest(first: Sequence[int], strides: Sequence[int], one: Computation) -> int:
    return max(first) + sum(max(strides[loop], 0) * (one.loops[loop][1] - 1) for loop in _moving(one))


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
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{label}[{NUMBER_BITS} * t +: {NUMBER_BITS}]"


def number_table(label: str, numbers: Sequence[int]) -> Iterator[str]:
    """Yield a constant of 32 bits for each number."""
    yield f"localparam [{NUMBER_BITS * len(numbers) - 1}:0] {label} = {{"
    for end in range(len(numbers), 0, -8):
        row = ", ".join(f"32'd{number}" for number in reversed(numbers[max(end - 8, 0) : end]))
        yield f"    {row}{',' if end > 8 else ''}"
    yield "};"
