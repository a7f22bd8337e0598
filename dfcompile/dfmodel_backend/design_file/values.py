"""Values that no field of a design file may have: no number, negative, huge, of no enumeration, unprintable."""

import math
from collections.abc import Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError

# Least values of whole numbers; 0 for the others.
_LEAST = {("Kernel", "config"): -1}
# Most that can be searched or summed exactly; 0 for no limit but that of 64 bits.
_MOST = {
    ("System", "num_chip"): 2**24,
    ("Accelerator", "core"): 2**22,
    ("LLM", "seq_len"): 2**24,
    ("LLM", "global_batch_size"): 2**40,
}
_MOST_OF_ALL = 2**62


def check_values(message: schema.DSE, where: str) -> None:
    """Check the value of every field that is set.

    Raises:
        UserError: naming the kernel or connection and the field.
    """
    for number, kernel in enumerate(message.dataflow_graph.kernels, start=1):
        _check(kernel, f"{where}: kernel {kernel.name!r}" if kernel.name else f"{where}: kernel number {number}", "")
    for number, connection in enumerate(message.dataflow_graph.connections, start=1):
        _check(connection, f"{where}: connection {connection.id or f'number {number}'}", "")
    for part in ("system", "cost", "execution", "gurobi"):
        _check(getattr(message, part), where, f"{part}.")


def _check(message: Message, where: str, path: str) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            _check(value, where, path if path == "" else f"{path}{field.name}.")
            continue
        for problem in _problems(field, value):
            raise UserError(f"{where}: field '{path}{field.name}': {problem}")


def _problems(field: FieldDescriptor, value: object) -> Iterator[str]:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number
        if value not in known:
            names = ", ".join(one.name for number, one in known.items() if number)
            yield f"found the number {value} against {names}"
    elif isinstance(value, str):
        if not value.isprintable():  # names stand in errors, tables and pictures
            yield f"found {value!r} against printable characters"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"found {value} against a finite 32-bit number"
        elif value < 0:
            yield f"found {value:g} against at least 0"
    elif isinstance(value, int):
        key = (field.containing_type.name if field.containing_type else "", field.name)
        least, most = _LEAST.get(key, 0), _MOST.get(key, _MOST_OF_ALL)
        if not least <= value <= most:
            yield f"found {value} against {f'at least {least}' if value < least else f'at most {most}'}"
