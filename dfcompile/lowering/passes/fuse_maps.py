"""The pass fuse-maps: a nest of one operand is computed where its result is read."""

from collections import Counter
from collections.abc import Mapping
from math import prod

from msgspec import Struct

from dfcompile.canonical_dag.kernel import Digit, Kernel
from dfcompile.frontend import Level
from dfcompile.lowering.expressions import is_readable, stored, substitute, widened
from dfcompile.lowering.lowering_pass import lowering_pass
from dfcompile.lowering.nests.program import Nest, NestAccess, NestProgram, OperatorNests, View, words_of
from dfcompile.records import replace

_Place = tuple[int, int]  # step, nest of it


@lowering_pass("fuse-maps", level=Level.NESTS, source="own")
def fuse_maps(program: NestProgram) -> NestProgram:
    """Compute a nest of one operand where its result is read, if one nest alone reads that, each element once.

    ``t[j, i] = f(x[i, j]); y[i] += g(t[j, i])`` becomes ``y[i] += g(f(x[i, j]))``, whatever the order of the loops:
    so a transposition, a cast or an activation needs no tasks of its own. An array that is an output, in memory, or
    seen through a view stays, and so does one whose nest is a part of an operator.
    """
    nests = _Nests(program)
    fused = [number for number in range(len(program.steps)) if nests.fuse(number)]
    return nests.finish() if fused else program


class _Joined(Struct, frozen=True, eq=False):
    """A nest of one operand, and the nest that reads its result."""

    read: NestAccess
    write: NestAccess
    variable: str
    producer: OperatorNests
    consumer: OperatorNests
    reader: Nest

    @property
    def maker(self) -> Nest:
        """The nest that writes."""
        return self.producer.nests[0]


class _Nests:
    """The nests of a program, two of which can become one."""

    def __init__(self, program: NestProgram) -> None:
        self._program = program
        self._steps: list[OperatorNests | View | None] = list(program.steps)
        self._shown = {step.tensor.name: step.source for step in program.steps if isinstance(step, View)}
        self._viewed = frozenset(self._shown.values())
        self._writers = Counter(nest.write.tensor.name for nest in program.nests)
        again = (nest for nest in program.nests if nest.accumulate is not None or nest.after_write)
        self._rewritten = {nest.write.tensor.name for nest in again}
        self._readers: dict[str, list[tuple[_Place, str]]] = {}  # with their variable; of a table none
        for number, step in enumerate(program.steps):
            for place, nest in enumerate(step.nests) if isinstance(step, OperatorNests) else ():
                read = [(access.tensor.name, variable) for variable, access in nest.reads.items()]
                for name, variable in (*read, *((table.name, "") for table in nest.tables.values())):
                    self._readers.setdefault(name, []).append(((number, place), variable))

    def finish(self) -> NestProgram:
        """Return the program as it is now."""
        return replace(self._program, steps=tuple(step for step in self._steps if step is not None))

    def fuse(self, number: int) -> bool:
        """Join the nest of a step with the one that reads its result, if possible; return whether it was."""
        joined = self._around(number)
        if joined is None:
            return False
        indices, code, kernel = _composed(joined), _code(joined), _kernel(joined)
        if indices is None or code is None or kernel is None:
            return False
        ((place, variable),) = self._readers.pop(joined.write.tensor.name)
        reads = {**joined.reader.reads, variable: NestAccess(joined.read.tensor, indices)}
        nests = list(joined.consumer.nests)
        nests[place[1]] = replace(joined.reader, reads=reads, code=code)
        self._steps[place[0]] = replace(joined.consumer, nests=tuple(nests), kernel=kernel)
        self._steps[number] = None
        readers = self._readers[joined.read.tensor.name]
        readers[[reader for reader, _ in readers].index((number, 0))] = (place, variable)
        return True

    def _around(self, number: int) -> _Joined | None:
        """Return the nest of a step and the one that reads its result, which nobody else sees."""
        producer = self._steps[number]
        if not isinstance(producer, OperatorNests) or len(producer.nests) != 1:
            return None
        (maker,) = producer.nests
        name = maker.write.tensor.name
        array, readers = self._program.arrays[name], self._readers.get(name, [])
        is_plain = array.is_transient and not array.is_materialised and name not in self._viewed
        is_simple = len(maker.reads) == 1 and not maker.tables and maker.accumulate is None and maker.scatter is None
        if not (is_plain and is_simple) or maker.library or self._writers[name] > 1 or len(readers) != 1:
            return None
        (((step, place), variable),) = readers
        consumer = self._steps[step]
        assert isinstance(consumer, OperatorNests)
        reader, (read,) = consumer.nests[place], maker.reads.values()
        if not variable or reader.library or not self._is_never_rewritten(read.tensor.name):
            return None
        return _Joined(read, maker.write, variable, producer, consumer, reader)

    def _is_never_rewritten(self, name: str) -> bool:
        """Whether an array, and what it is a view of, has the same content wherever it is read."""
        shown = self._shown.get(name)
        return name not in self._rewritten and (shown is None or self._is_never_rewritten(shown))


def _composed(joined: _Joined) -> tuple[Mapping[str, int], ...] | None:
    """Return where the reader finds what the maker reads; ``None`` unless all three see each element once."""
    made, wanted = joined.maker.extents, joined.reader.extents
    of_read, of_write = _loops_of(joined.read, made), _loops_of(joined.write, made)
    of_use = _loops_of(joined.reader.reads[joined.variable], wanted)
    if of_read is None or of_write is None or of_use is None:
        return None
    elements = joined.write.tensor.elements
    if {prod(made.values()), prod(wanted.values()), joined.read.tensor.elements} != {elements}:
        return None
    place = {loop: used for loop, used in zip(of_write, of_use, strict=True) if loop is not None}
    return tuple({} if loop is None or not place.get(loop) else {place[loop] or "": 1} for loop in of_read)


def _code(joined: _Joined) -> str | None:
    maker, reader, between = joined.maker, joined.reader, joined.write.tensor
    if reader.scatter is not None or not maker.extents.keys().isdisjoint(words_of(maker.code)):
        return None
    (name,) = maker.reads
    kept = stored(substitute(maker.code, {name: joined.variable}), between, [joined.read.tensor])
    expression = substitute(widened(reader.code, {joined.variable: between.dtype}), {joined.variable: kept})
    return expression if is_readable(expression) else None


def _kernel(joined: _Joined) -> Kernel | None:
    """Return the kernel of the reader with what the maker reads as its operand."""
    made, kernel = joined.producer.kernel, joined.consumer.kernel
    read, write = joined.read.tensor, joined.write.tensor
    is_one = made.inputs == (read.name,) and made.outputs == (write.name,)
    if not is_one or made.variant.is_gemm or kernel.inputs.count(write.name) != 1:
        return None
    at = kernel.inputs.index(write.name)
    inputs = (*kernel.inputs[:at], read.name, *kernel.inputs[at + 1 :])
    loops = []
    for loop in kernel.loops:
        digit = _moved(loop.inputs[at], joined)
        if (digit is None) != (loop.inputs[at] is None):
            return replace(kernel, inputs=inputs, loops=())
        loops.append(replace(loop, inputs=(*loop.inputs[:at], digit, *loop.inputs[at + 1 :])))
    return replace(kernel, inputs=inputs, loops=tuple(loops))


def _moved(digit: Digit | None, joined: _Joined) -> Digit | None:
    """Return where a loop that moves in the result of a nest moves in its operand; ``None`` if not known."""
    extents = joined.maker.extents
    of_read, of_write = _loops_of(joined.read, extents), _loops_of(joined.write, extents)
    if digit is None or of_read is None or of_write is None:
        return None
    target, source = joined.write.tensor.strides, joined.read.tensor.strides
    for axis, loop in enumerate(of_write):
        whole = extents.get(loop or "", 1) * target[axis]
        if loop is not None and whole > 1 and target[axis] <= digit.stride < whole:
            place = of_read.index(loop)
            return Digit(source[place] * (digit.stride // target[axis]), place)
    return None


def _loops_of(access: NestAccess, extents: Mapping[str, int]) -> tuple[str | None, ...] | None:
    """Return the loop that each dimension of an access is; ``None`` unless each loop is one, with other elements."""
    found: list[str | None] = []
    for index in access.indices:
        terms = {name: factor for name, factor in index.items() if factor}
        if terms and (len(terms) > 1 or set(terms.values()) != {1} or "" in terms):
            return None
        found.append(next(iter(terms), None))
    loops = [loop for loop in found if loop is not None]
    is_once = len(loops) == len(set(loops)) and all(name in loops or extent == 1 for name, extent in extents.items())
    return tuple(found) if is_once else None
