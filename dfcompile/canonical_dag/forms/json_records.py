"""Fields of JSON records in files of canonical DAGs, and the tables that every form has; faults name the record."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.forms.loops_form import format_loops, parse_loops
from dfcompile.canonical_dag.forms.reader import FORMAT, DagReader
from dfcompile.canonical_dag.forms.reference import check_characters, shortened
from dfcompile.canonical_dag.kernel import Kernel, KernelTensor, KernelVariant, TensorRole
from dfcompile.errors import UserError, nearest

Record = Mapping[str, object]

_LARGEST_NUMBER = 2**63 - 1

_KERNEL = (
    "name", "op", "origin", "expansion", "variant", "outer", "m", "k", "n",
    "memory_bytes", "inputs", "outputs", "loops",
)  # fmt: skip
_TENSOR = ("name", "elements", "element_bytes", "role")


def top_record(text: str, known: tuple[str, ...]) -> Record:
    """Return the one object of a file.

    Raises:
        UserError: it is none, or of another format.
    """
    try:
        top = record_of(json.loads(text, object_pairs_hook=_unique_fields), "file", known)
    except (ValueError, RecursionError) as error:
        raise UserError(f"json: {error} against a JSON object") from None
    if top.get("format") != FORMAT:
        raise UserError(f"format: {top.get('format')!r} against {FORMAT!r}")
    return top


def table_records(dag: CanonicalDag) -> dict[str, list[object]]:
    """Return kernels, tensors and orders as values that JSON has."""
    return {
        "kernels": [{**asdict(kernel), "loops": format_loops(kernel.loops)} for kernel in dag.kernels],
        "tensors": [asdict(tensor) for tensor in dag.tensors],
        "orders": list(dag.orders),
    }


def reader_of(top: Record) -> DagReader:
    """Return a reader that has the name and the tables of a file.

    Raises:
        UserError: naming the record.
    """
    reader = DagReader(text_of(top, "name", "file", "dag"))
    for where, row in rows_of(top, "kernels", _KERNEL):
        reader.kernel(_kernel(row, where), where)
    for where, row in rows_of(top, "tensors", _TENSOR):
        reader.tensor(_tensor(row, where), where)
    reader.orders(texts_of(top, "orders", "file"))
    return reader


def _kernel(row: Record, where: str) -> Kernel:
    name, op, origin, expansion = (text_of(row, key, where) for key in ("name", "op", "origin", "expansion"))
    outer, m, k, n = (number_of(row, key, where) for key in ("outer", "m", "k", "n"))
    inputs, outputs = (texts_of(row, key, where) for key in ("inputs", "outputs"))
    variant = text_of(row, "variant", where)
    if variant not in list(KernelVariant):
        raise UserError(f"{where}: variant {variant!r} against {', '.join(KernelVariant)}")
    memory_bytes = number_of(row, "memory_bytes", where, default=0)
    loops = parse_loops(text_of(row, "loops", where, ""), where)
    return Kernel(
        name, op, origin, expansion, KernelVariant(variant), outer, m, k, n, inputs, outputs, memory_bytes, loops
    )  # fmt: skip


def _tensor(row: Record, where: str) -> KernelTensor:
    role = text_of(row, "role", where)
    if role not in list(TensorRole):
        raise UserError(f"{where}: role {role!r} against {', '.join(TensorRole)}")
    name, elements = text_of(row, "name", where), number_of(row, "elements", where)
    return KernelTensor(name, elements, number_of(row, "element_bytes", where), TensorRole(role))


def rows_of(top: Record, name: str, known: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Yield the records of a list and where they stand.

    Raises:
        UserError: it is none.
    """
    for place, row in enumerate(_list_of(top, name)):
        where = f"{name}[{place}]"
        yield where, record_of(row, where, known)


def record_of(value: object, where: str, known: tuple[str, ...]) -> Record:
    """Return a value as a record with known fields.

    Raises:
        UserError: it is none.
    """
    if not isinstance(value, dict):
        raise UserError(f"{where}: {type(value).__name__} against an object")
    for key in value:
        if key not in known:
            raise UserError(f"{where}: unknown field {key!r}{nearest(str(key), known)}")
    return value


def _unique_fields(fields: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(fields)
    if len(record) < len(fields):
        count = Counter(name for name, _ in fields)
        twice = next(name for name in record if count[name] > 1)
        raise UserError(f"json: field {shortened(twice)!r} given twice in one object against once")
    return record


def _list_of(record: Record, name: str) -> list[object]:
    value = record.get(name, [])
    if not isinstance(value, list):
        raise UserError(f"{name}: {type(value).__name__} against a list")
    return value


def texts_of(record: Record, name: str, where: str) -> tuple[str, ...]:
    """Return a list of texts of a record.

    Raises:
        UserError: it is none.
    """
    return tuple(_checked(value, f"{name}[{place}]", where) for place, value in enumerate(_list_of(record, name)))


def text_of(record: Record, name: str, where: str, default: str | None = None) -> str:
    """Return a text of a record.

    Raises:
        UserError: it is none.
    """
    return _checked(record.get(name, default), name, where)


def _checked(value: object, name: str, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where}: {name} {shortened(repr(value))} against a text")
    check_characters(value, where)
    return value


def number_of(record: Record, name: str, where: str, default: int | None = None) -> int:
    """Return a whole number of a record.

    Raises:
        UserError: it is none.
    """
    value = record.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UserError(f"{where}: {name} {shortened(repr(value))} against a whole number")
    if abs(value) > _LARGEST_NUMBER:
        raise UserError(f"{where}: {name} {shortened(repr(value))} against at most {_LARGEST_NUMBER}")
    return value
