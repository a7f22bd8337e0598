"""What joins the modules that compute values: words of FIFOs, arrays in memory, and what loads them."""

from collections.abc import Container, Iterator
from itertools import groupby

from dfcompile.rtl.arithmetic import WORD_BITS
from dfcompile.rtl.circuit import Circuit
from dfcompile.rtl.datapath import Datapath
from dfcompile.rtl.regular_rows import regular_rows
from dfcompile.rtl.signals import Signals, identifier
from dfcompile.rtl.values_module import PLACE_BITS, values_module, word_bits

INPUT = "input"  # number of the input that a simulation begins with, as ``+input=3``
FILE_LENGTH = 512  # characters of a name at most


def array_names(datapath: Datapath) -> dict[str, str]:
    """Return the name in Verilog of each array in memory."""
    taken = set[str]()
    return {array.name: identifier(array.name, taken, prefix="array_") for array in datapath.arrays}


def file_name(module: str, array: str, number: int | str | None = None) -> str:
    """Return the name of the file with what an array of a circuit holds at first; of an input, of one run."""
    return f"{module}.{array}.hex" if number is None else f"{module}.{array}.{number}.hex"


def value_modules(name: str, circuit: Circuit, datapath: Datapath) -> Iterator[str]:
    """Yield the modules that compute the values of a circuit of a name."""
    for label, family, one in zip(Signals(circuit).labels, circuit.families, datapath.computations, strict=False):
        yield values_module(f"{name}_{label}_values", family, one)


class ValueWires:
    """The parts of a circuit's module that move values."""

    def __init__(
        self, name: str, circuit: Circuit, datapath: Datapath, inputs: Container[str], constants: Container[str]
    ) -> None:
        self._name, self._circuit, self._datapath = name, circuit, datapath
        self._inputs, self._constants = inputs, constants
        self._signals, self._arrays = Signals(circuit), array_names(datapath)

    def lines(self) -> Iterator[str]:
        """Yield arrays, the modules of all families, and what joins them; the modules of tasks and FIFOs are there."""
        yield ""
        yield "    // arrays in memory"
        for array in self._datapath.arrays:
            yield f"    reg [{WORD_BITS[array.dtype] - 1}:0] {self._arrays[array.name]}[0:{array.elements - 1}];"
        yield from self._loads()
        for family in range(len(self._circuit.families)):
            yield from self._family(family)
        sizes = [(fifo.push, fifo.pull, f"{fifo.capacity} + EXTRA") for fifo in self._circuit.fifos]
        sizes += [(push, pull, str(elements)) for push, pull, elements in self._datapath.spilled]
        joined = [(self._signals.push(push), self._signals.pull(pull), places) for push, pull, places in sizes]
        joined.sort(key=lambda one: (one[0][0], one[1][0], one[2]))
        groups = groupby(joined, lambda one: (one[0][0], one[1][0], one[2]))
        for number, ((writer, reader, places), members) in enumerate(groups):
            rows = [(push, pull) for (_, push), (_, pull), _ in members]
            yield from self._words(f"words_{number}", writer, reader, places, rows)

    def _loads(self) -> Iterator[str]:
        yield f"    reg [8 * {FILE_LENGTH} - 1:0] file;"
        yield "    integer number;"
        yield "    initial begin"
        yield f'        if (!$value$plusargs("{INPUT}=%d", number))'
        yield "            number = 0;"
        for name, label in self._arrays.items():
            if name in self._inputs:
                yield f'        $sformat(file, "{file_name(self._name, label, "%0d")}", number);'
                yield f"        $readmemh(file, {label});"
            elif name in self._constants:
                yield f'        $readmemh("{file_name(self._name, label)}", {label});'
        yield "    end"

    def _family(self, number: int) -> Iterator[str]:
        family, one, label = (
            self._circuit.families[number], self._datapath.computations[number], self._signals.labels[number]
        )  # fmt: skip
        count, bits, width = family.count, WORD_BITS[one.dtype], word_bits(one)
        ports = max(count * family.inputs, 1)
        yield ""
        yield f"    // values of {label}"
        yield f"    wire [{width * ports - 1}:0] {label}_words;"
        yield f"    wire [{PLACE_BITS * ports - 1}:0] {label}_places;"
        yield f"    wire [{bits * count - 1}:0] {label}_value;"
        yield f"    wire [{PLACE_BITS * count - 1}:0] {label}_place;"
        yield f"    wire [{count - 1}:0] {label}_finals;"
        takes = f"{label}_pull & {label}_available" if family.inputs else "1'b0"
        yield f"    {self._name}_{label}_values {label}_values ("
        yield f"        .clk(clk), .reset(reset), .takes({takes}), .reads({label}_reads), .writes({label}_writes),"
        yield f"        .words({label}_words), .places({label}_places), .value({label}_value), .place({label}_place),"
        yield f"        .finals({label}_finals)"
        yield "    );"
        for at, operand in enumerate(one.operands):
            if operand.is_stored:
                port = f"{at * count} + i"
                element = f"{self._arrays[operand.array]}[{label}_places[({port}) * {PLACE_BITS} +: {PLACE_BITS}]]"
                yield f"    for (i = 0; i < {count}; i = i + 1)"
                yield f"        assign {label}_words[({port}) * {width} +: {WORD_BITS[operand.dtype]}] = {element};"
        stores = [at for at, is_store in enumerate(one.stores) if is_store]
        if stores:
            port = f"[{stores[0] * count} +: {count}]"
            enters = f"{label}_finals" if one.kept > 1 else f"{label}_push{port} & {label}_space{port}"
            yield f"    integer {label}_t;"
            yield f"    wire [{count - 1}:0] {label}_stores = {enters};"
            yield "    always @(posedge clk)"
            yield f"        if (|{label}_stores)"
            yield f"            for ({label}_t = 0; {label}_t < {count}; {label}_t = {label}_t + 1)"
            yield f"                if ({label}_stores[{label}_t])"
            place, value = (f"[{label}_t * {size} +: {size}]" for size in (PLACE_BITS, bits))
            yield f"                    {self._arrays[one.array]}[{label}_place{place}] = {label}_value{value};"

    def _words(self, name: str, writer: int, reader: int, places: str, rows: list[tuple[int, int]]) -> Iterator[str]:
        source, target = self._signals.labels[writer], self._signals.labels[reader]
        bits, tasks = WORD_BITS[self._datapath.computations[writer].dtype], self._circuit.families[writer].count
        width = word_bits(self._datapath.computations[reader])
        yield ""
        yield f"    // values from {source} to {target}"
        yield f"    wire [{len(rows) - 1}:0] {name}_enters, {name}_leaves;"
        yield f"    wire [{bits * len(rows) - 1}:0] {name}_written, {name}_next;"
        yield f"    words #(.COUNT({len(rows)}), .WIDTH({bits}), .PLACES({places})) {name} ("
        yield f"        .clk(clk), .reset(reset), .enters({name}_enters), .written({name}_written),"
        yield f"        .leaves({name}_leaves), .next({name}_next)"
        yield "    );"
        for row in regular_rows([((), (own, push, push % tasks, pull)) for own, (push, pull) in enumerate(rows)]):
            own, push, task, pull = map(row.text, range(4))
            yield f"    for (i = 0; i < {row.count}; i = i + 1) begin"
            yield f"        assign {name}_enters[{own}] = {source}_push[{push}] & {source}_space[{push}];"
            yield f"        assign {name}_written[({own}) * {bits} +: {bits}] ="
            yield f"            {source}_value[({task}) * {bits} +: {bits}];"
            yield f"        assign {name}_leaves[{own}] = {target}_pull[{pull}] & {target}_available[{pull}];"
            yield f"        assign {target}_words[({pull}) * {width} +: {bits}] ="
            yield f"            {name}_next[({own}) * {bits} +: {bits}];"
            yield "    end"
