"""What joins the modules that compute values: words of FIFOs, arrays in memory, and what loads them."""

from collections.abc import Container, Iterator
from itertools import groupby

from dfcompile.rtl.arithmetic import WORD_BITS
from dfcompile.rtl.circuit import Circuit, Family
from dfcompile.rtl.datapath import Computation, Datapath
from dfcompile.rtl.signals import Signals, identifier, regular_rows
from dfcompile.rtl.top_module import module_head
from dfcompile.rtl.values_module import NUMBER_BITS, number_table, place_bits, task_numbers, values_module, word_bits

INPUT = "input"  # number of the input that a simulation begins with, as ``+input=3``
_NONE = "1'b0"
FILE_LENGTH = 512  # characters of a name at most


def array_names(datapath: Datapath) -> dict[str, str]:
    """Return the name in Verilog of each array in memory."""
    taken = set[str]()
    return {array.name: identifier(array.name, taken, prefix="array_") for array in datapath.arrays}


def file_name(module: str, array: str, number: int | str | None = None) -> str:
    """Return the name of the file with what an array of a circuit holds at first; of an input, of one run."""
    return f"{module}.{array}.hex" if number is None else f"{module}.{array}.{number}.hex"


def value_modules(name: str, circuit: Circuit, datapath: Datapath, *, apart: bool = False) -> Iterator[str]:
    """Yield the modules that compute the values of a circuit of a name; those of one task each if they are apart."""
    for label, family, one in zip(Signals(circuit).labels, circuit.families, datapath.computations, strict=False):
        yield values_module(f"{name}_{label}_values", family, one, apart=apart)


class ValueWires:
    """The parts of a circuit's module that move values, and the module of its memory."""

    def __init__(
        self, name: str, circuit: Circuit, datapath: Datapath, inputs: Container[str], constants: Container[str]
    ) -> None:
        self._name, self._circuit, self._datapath = name, circuit, datapath
        self._inputs, self._constants = inputs, constants
        self._signals, self._arrays = Signals(circuit), array_names(datapath)

    def ports(self) -> list[str]:
        """Return the ports of the circuit for elements of arrays."""
        return [f"{direction} wire [{bits - 1}:0] {signal}" for signal, bits, direction in self._ports()]

    def _ports(self) -> Iterator[tuple[str, int, str]]:
        for label, family, one in self._families():
            width, stored = place_bits(one), family.count * len(one.stored)
            if stored:
                yield f"{label}_places", width * stored, "output"
                yield f"{label}_stored", word_bits(one) * stored, "input "
            if any(one.stores):
                yield f"{label}_place", width * family.count, "output"
                yield f"{label}_value", WORD_BITS[one.dtype] * family.count, "output"
                yield f"{label}_stores", family.count, "output"

    def _families(self) -> Iterator[tuple[str, Family, Computation]]:
        return zip(self._signals.labels, self._circuit.families, self._datapath.computations, strict=False)

    def lines(self, *, apart: bool = False) -> Iterator[str]:
        """Yield the modules of values, and what joins them; the modules of tasks and FIFOs are there.

        Args:
            apart: each task has a module of its own.
        """
        ports = {signal for signal, _, _ in self._ports()}
        for label, family, one in self._families():
            yield from self._family(label, family, one, ports)
            yield from self._apart(label, family, one) if apart else self._together(label, family, one)
        sizes = [(fifo.push, fifo.pull, f"{fifo.capacity} + EXTRA") for fifo in self._circuit.fifos]
        sizes += [(push, pull, str(elements)) for push, pull, elements in self._datapath.spilled]
        joined = [(self._signals.push(push), self._signals.pull(pull), places) for push, pull, places in sizes]
        joined.sort(key=lambda one: (one[0][0], one[1][0], one[2]))
        groups = groupby(joined, lambda one: (one[0][0], one[1][0], one[2]))
        for number, ((writer, reader, places), members) in enumerate(groups):
            rows = [(push, pull) for (_, push), (_, pull), _ in members]
            yield from self._words(f"words_{number}", writer, reader, places, rows)

    def memory(self) -> str:
        """Return the module of the circuit with the arrays that it has in memory."""
        head = f"// The circuit, and the arrays that it has in memory.\n{module_head(self._name, self._circuit)}"
        return "\n".join((head, *(f"    {line}" for line in self._memory()), "endmodule", ""))

    def _memory(self) -> Iterator[str]:
        yield "genvar i;"
        for array in self._datapath.arrays:
            yield f"reg [{WORD_BITS[array.dtype] - 1}:0] {self._arrays[array.name]}[0:{array.elements - 1}];"
        yield from self._loads()
        yield ""
        ports = list(self._ports())
        for signal, bits, _ in ports:
            yield f"wire [{bits - 1}:0] {signal};"
        yield f"{self._name}_circuit #(.REGISTERED(REGISTERED), .EXTRA(EXTRA)) circuit ("
        yield "    .clk(clk), .reset(reset), .go(go), .load(load), .loadable(loadable), .store(store),"
        yield f"    .storable(storable), .moves(moves), .ended(ended){',' if ports else ''}"
        for number, (signal, _, _) in enumerate(ports, 1):
            yield f"    .{signal}({signal}){',' if number < len(ports) else ''}"
        yield ");"
        for label, family, one in self._families():
            yield from self._accesses(label, family, one)

    def _loads(self) -> Iterator[str]:
        yield f"reg [8 * {FILE_LENGTH} - 1:0] file;"
        yield "integer number;"
        yield "initial begin"
        yield f'    if (!$value$plusargs("{INPUT}=%d", number))'
        yield "        number = 0;"
        for name, label in self._arrays.items():
            if name in self._inputs:
                yield f'    $sformat(file, "{file_name(self._name, label, "%0d")}", number);'
                yield f"    $readmemh(file, {label});"
            elif name in self._constants:
                yield f'    $readmemh("{file_name(self._name, label)}", {label});'
        yield "end"

    def _accesses(self, label: str, family: Family, one: Computation) -> Iterator[str]:
        count, width, places = family.count, word_bits(one), place_bits(one)
        for number, (_, operand) in enumerate(one.stored):
            port = f"({number * count} + i)"
            element = f"{self._arrays[operand.array]}[{label}_places[{port} * {places} +: {places}]]"
            yield f"for (i = 0; i < {count}; i = i + 1)"
            yield f"    assign {label}_stored[{port} * {width} +: {WORD_BITS[operand.dtype]}] = {element};"
        if any(one.stores):
            yield f"integer {label}_t;"
            yield "always @(posedge clk)"
            yield f"    if (|{label}_stores)"
            yield f"        for ({label}_t = 0; {label}_t < {count}; {label}_t = {label}_t + 1)"
            yield f"            if ({label}_stores[{label}_t])"
            place, value = (f"[{label}_t * {size} +: {size}]" for size in (places, WORD_BITS[one.dtype]))
            yield f"                {self._arrays[one.array]}[{label}_place{place}] = {label}_value{value};"

    def _family(self, label: str, family: Family, one: Computation, declared: Container[str]) -> Iterator[str]:
        count, bits, width, places = family.count, WORD_BITS[one.dtype], word_bits(one), place_bits(one)
        ports = max(count * family.inputs, 1)
        wires = {"words": width * ports, "value": bits * count, "place": places * count, "finals": count}
        yield ""
        yield f"    // values of {label}"
        for name, size in wires.items():
            if f"{label}_{name}" not in declared:
                yield f"    wire [{size - 1}:0] {label}_{name};"
        size = count * width
        for number, (at, _) in enumerate(one.stored):
            yield f"    assign {label}_words[{at * size} +: {size}] = {label}_stored[{number * size} +: {size}];"
        stores = [at for at, is_store in enumerate(one.stores) if is_store]
        if stores:
            port = f"[{stores[0] * count} +: {count}]"
            enters = f"{label}_finals" if one.kept > 1 else f"{label}_push{port} & {label}_space{port}"
            yield f"    assign {label}_stores = {enters};"

    def _together(self, label: str, family: Family, one: Computation) -> Iterator[str]:
        takes = f"{label}_pull & {label}_available" if family.inputs else _NONE
        yield f"    {self._name}_{label}_values {label}_values ("
        yield f"        .clk(clk), .reset(reset), .takes({takes}), .reads({label}_reads), .writes({label}_writes),"
        yield f"        .words({label}_words), .value({label}_value), .place({label}_place), .finals({label}_finals)"
        if one.stored:
            yield f"        , .places({label}_places)"
        yield "    );"

    def _apart(self, label: str, family: Family, one: Computation) -> Iterator[str]:
        count, numbers = family.count, task_numbers(one)
        for name, constants in numbers.items():
            yield from (f"    {line}" for line in number_table(f"{label}_{name}", constants))

        def of_task(signal: str, bits: int, ports: int = 1) -> str:
            parts = (f"{label}_{signal}[({port * count} + i) * {bits} +: {bits}]" for port in reversed(range(ports)))
            return f"{{{', '.join(parts)}}}"

        inputs, place = max(family.inputs, 1), place_bits(one)
        pins = {name: f"{label}_{name}[{NUMBER_BITS} * i +: {NUMBER_BITS}]" for name in numbers}
        takes = f"{of_task('pull', 1, inputs)} & {of_task('available', 1, inputs)}"
        pins |= {"takes": takes if family.inputs else _NONE}
        pins |= {name: f"{label}_{name}[i]" for name in ("reads", "writes", "finals")}
        pins |= {"words": of_task("words", word_bits(one), inputs), "value": of_task("value", WORD_BITS[one.dtype])}
        pins |= {"place": of_task("place", place)}
        if one.stored:
            pins |= {"places": of_task("places", place, len(one.stored))}
        yield f"    for (i = 0; i < {count}; i = i + 1) begin : {label}_apart"
        yield f"        {self._name}_{label}_values values ("
        yield from (f"            .{name}({signal})," for name, signal in pins.items())
        yield "            .clk(clk), .reset(reset)"
        yield "        );"
        yield "    end"

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
