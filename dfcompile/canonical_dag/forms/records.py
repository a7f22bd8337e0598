"""Records of files of canonical DAGs, whatever their syntax: which fields each has, and what is made of them."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeVar

from msgspec.structs import asdict

from dfcompile.canonical_dag.dag import UNORDERED, CanonicalDag, Int64
from dfcompile.canonical_dag.forms.reader import FORMAT, DagReader
from dfcompile.canonical_dag.forms.reference import check_characters, parse_numbers, shortened
from dfcompile.canonical_dag.kernel import (
    Digit,
    Kernel,
    KernelLoop,
    KernelTensor,
    KernelVariant,
    LoopKind,
    LoopPart,
    TensorRole,
)
from dfcompile.errors import UserError, nearest

_LARGEST_NUMBER = 2**63 - 1

Choice = TypeVar("Choice", bound=StrEnum)

KERNEL_FIELDS = (
    "op", "origin", "expansion", "variant", "outer", "m", "k", "n", "memory_bytes", "loops", "inputs", "outputs",
)  # fmt: skip
EDGE_FIELDS = ("volume", "volumes", "distinct", "bytes", "order")
_DIGITS = r"(?:-|\d{1,18}@\d{1,3})(?:,(?:-|\d{1,18}@\d{1,3}))*|"
_LOOP = re.compile(
    r"(?P<name>[^\s;]+) (?P<part>\w+) (?P<extent>\d{1,18}) (?P<kind>\w+) "
    rf"(?P<inputs>{_DIGITS}) (?P<outputs>{_DIGITS})"
)


class Fields:
    """The fields of a record, with the values that JSON has; each method raises a ``UserError`` that names the record.

    Attributes:
        where: the record.
    """

    def __init__(self, record: object, where: str, known: tuple[str, ...]) -> None:
        """Take in a value.

        Raises:
            UserError: it is no object, or has an unknown field.
        """
        if not isinstance(record, dict):
            raise UserError(f"{where}: {type(record).__name__} against an object")
        for key in record:
            if key not in known:
                raise UserError(f"{where}: unknown field {key!r}{nearest(str(key), known)}")
        self.where, self._record = where, record

    def __contains__(self, name: str) -> bool:
        """Whether a field is given."""
        return name in self._record

    def rows(self, name: str, known: tuple[str, ...]) -> Iterator["Fields"]:
        """Yield the records of a list."""
        for place, row in enumerate(self._list(name)):
            yield Fields(row, f"{name}[{place}]", known)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        return self._checked(self._record.get(name, default), name)

    def optional(self, name: str) -> str | None:
        """Return a text, or nothing."""
        return self.text(name) if name in self else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(self._checked(value, f"{name}[{place}]") for place, value in enumerate(self._list(name)))

    def number(self, name: str, default: int | None = None, where: str | None = None) -> int:
        """Return a whole number; ``where`` says more than the record does."""
        value = self._record.get(name, default)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, int) and is_whole and abs(value) <= _LARGEST_NUMBER:
            return value
        expected = f"at most {_LARGEST_NUMBER}" if is_whole else "a whole number"
        raise UserError(f"{where or self.where}: {name} {shortened(repr(value))} against {expected}")

    def numbers(self, name: str) -> Int64:
        """Return whole numbers between commas."""
        return parse_numbers(self.text(name), name, self.where)

    def choice(self, name: str, known: type[Choice]) -> Choice:
        """Return one of several words."""
        text = self.text(name)
        if text not in list(known):
            raise UserError(f"{self.where}: {name} {text!r} against {', '.join(known)}{nearest(text, known)}")
        return known(text)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel that the record says."""
        op, origin, expansion = (self.text(key) for key in ("op", "origin", "expansion"))
        outer, m, k, n = (self.number(key) for key in ("outer", "m", "k", "n"))
        inputs, outputs = (self.texts(key) for key in ("inputs", "outputs"))
        variant, memory_bytes = self.choice("variant", KernelVariant), self.number("memory_bytes", 0)
        loops = parse_loops(self.text("loops", ""), self.where)
        return Kernel(name, op, origin, expansion, variant, outer, m, k, n, inputs, outputs, memory_bytes, loops)

    def tensor(self, name: str, width: str) -> KernelTensor:
        """Return the tensor that the record says; ``width`` is the name of the field of bytes per element."""
        role = self.choice("role", TensorRole)
        return KernelTensor(name, self.number("elements"), self.number(width), role)

    def _list(self, name: str) -> list[object]:
        value = self._record.get(name, [])
        if not isinstance(value, list):
            raise UserError(f"{name}: {type(value).__name__} against a list")
        return value

    def _checked(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise UserError(f"{self.where}: {name} {shortened(repr(value))} against a text")
        check_characters(value, self.where)
        return value


def format_loops(loops: Sequence[KernelLoop]) -> str:
    """Return loops of a kernel as one text: ``row m 16 parallel 64@0,- 64@0; k k 64 sum 1@1,32@0 -``.

    Name, part, extent and kind of each loop, then where it moves in each operand and in each result: ``stride@axis``,
    or ``-`` where it does not.
    """
    return "; ".join(
        f"{loop.name} {loop.part} {loop.extent} {loop.kind} {_digits(loop.inputs)} {_digits(loop.outputs)}"
        for loop in loops
    )


def _digits(digits: Sequence[Digit | None]) -> str:
    return ",".join("-" if digit is None else f"{digit.stride}@{digit.axis}" for digit in digits)


def parse_loops(text: str, where: str) -> tuple[KernelLoop, ...]:
    """Parse what `format_loops` gives.

    Raises:
        UserError: with ``where`` in front.
    """
    return tuple(_loop(part.strip(" "), where) for part in text.split(";")) if text else ()


def _loop(text: str, where: str) -> KernelLoop:
    found = _LOOP.fullmatch(text)
    if found is None or found["part"] not in list(LoopPart) or found["kind"] not in list(LoopKind):
        raise UserError(
            f"{where}: loop {shortened(repr(text))} against 'NAME {'|'.join(LoopPart)} EXTENT {'|'.join(LoopKind)} "
            "OPERANDS RESULTS', each of these '-' or STRIDE@AXIS"
        )
    inputs, outputs = (tuple(map(_digit, filter(None, found[side].split(",")))) for side in ("inputs", "outputs"))
    part, kind = LoopPart(found["part"]), LoopKind(found["kind"])
    return KernelLoop(found["name"], part, int(found["extent"]), kind, inputs, outputs)


def _digit(text: str) -> Digit | None:
    return None if text == "-" else Digit(*map(int, text.split("@")))


def read_edges(reader: DagReader, fields: Fields, source: str, target: str, volume_where: str | None = None) -> None:
    """Read a record of edges between two references."""
    order = fields.text("order", UNORDERED)
    volume: int | Int64
    if "volumes" not in fields:
        volume = fields.number("volume", where=volume_where)
    elif "volume" not in fields:
        volume = fields.numbers("volumes")
    else:
        raise UserError(f"{fields.where}: 'volume' and 'volumes' against one of them")
    element_bytes = fields.number("bytes", 4)
    distinct = fields.number("distinct") if "distinct" in fields else None
    reader.edges(source, target, volume, fields.where, element_bytes, order, distinct)


def top_record(text: str, known: tuple[str, ...]) -> Fields:
    """Return the one object of a file.

    Raises:
        UserError: it is none, or of another format.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique_fields)
        top = Fields(value, "file", known)
    except (ValueError, RecursionError) as error:
        raise UserError(f"json: {error} against a JSON object") from None
    if value.get("format") != FORMAT:
        raise UserError(f"format: {value.get('format')!r} against {FORMAT!r}")
    return top


def _unique_fields(fields: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(fields)
    if len(record) < len(fields):
        count = Counter(name for name, _ in fields)
        twice = next(name for name in record if count[name] > 1)
        raise UserError(f"json: field {shortened(twice)!r} given twice in one object against once")
    return record


def table_records(dag: CanonicalDag) -> dict[str, list[object]]:
    """Return kernels, tensors and orders as values that JSON has."""
    return {
        "kernels": [{**asdict(kernel), "loops": format_loops(kernel.loops)} for kernel in dag.kernels],
        "tensors": [asdict(tensor) for tensor in dag.tensors],
        "orders": list(dag.orders),
    }


def reader_of(top: Fields) -> DagReader:
    """Return a reader that has the name and the tables of a file.

    Raises:
        UserError: naming the record.
    """
    reader = DagReader(top.text("name", "dag"))
    for row in top.rows("kernels", ("name", *KERNEL_FIELDS)):
        reader.kernel(row.kernel(row.text("name")), row.where)
    for row in top.rows("tensors", ("name", "elements", "element_bytes", "role")):
        reader.tensor(row.tensor(row.text("name"), "element_bytes"), row.where)
    for order in top.texts("orders"):
        reader.add_order(order)
    return reader
