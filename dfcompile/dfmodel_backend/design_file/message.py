"""Design files as messages of DFModel's format [ko24]: text or binary, of every age that is understood."""

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError, nearest
from dfcompile.host.inputs import read_bytes
from dfcompile.host.printable import reason_of

Gemm = schema.GEMM_Input1_Weight | schema.GEMM_Input1_Input2
Variant = Gemm | schema.Elementwise_Input1 | schema.Elementwise_Input1_Input2


def variant_of(kernel: schema.Kernel) -> Variant:
    """Return the message with a kernel's dimensions."""
    variant: Variant = getattr(kernel, str(kernel.WhichOneof("kernel_variant")))
    return variant


LARGEST_BYTES = 2**28

# Names that older files use for the same fields.
_OLDER = (
    (re.compile(r"(?m)^(\s*)miscellany\b"), r"\1execution"),
    (re.compile(r"\bperfect_overlap(\s*:\s*)true\b"), r"overlap\1PERFECT_OVERLAP"),
    (re.compile(r"\bperfect_overlap(\s*:\s*)false\b"), r"overlap\1NO_OVERLAP"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")  # never in text, always in a message with a kernel


def read_message(path: Path) -> schema.DSE:
    """Read the message of a design file; what it is, text or binary, is told by its content.

    Raises:
        UserError: the file cannot be read or parsed, or has an unknown field; values are not checked yet.
    """
    where = f"design file {str(path)!r}"
    try:
        content = read_bytes(path, LARGEST_BYTES)
    except OSError as error:
        raise UserError(f"{where}: cannot be read: {reason_of(error)}") from error
    if not content.strip():
        raise UserError(f"{where}: found an empty file against a design")
    control = _CONTROL.search(content)
    if control is not None:
        return _parse_binary(content, control.start(), where)
    try:
        return parse_message(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{where}: neither UTF-8 text, because of byte 0x{content[error.start]:02x} in line {line}, "
            "nor a binary DFModel message"
        ) from error


def _parse_binary(content: bytes, control: int, where: str) -> schema.DSE:
    try:
        message = schema.DSE.FromString(content)
    except DecodeError as error:
        line = content.count(b"\n", 0, control) + 1
        raise UserError(
            f"{where}: not a binary DFModel message, or a damaged one "
            f"(nor text: byte 0x{content[control]:02x} in line {line})"
        ) from error
    for name, number in _unknown_fields(message):
        raise UserError(
            f"{where}: unknown field with number {number} of {name} (not a DFModel message, or a newer one)"
        )
    _forget_signs_of_zero(message)
    return message


def parse_message(text: str, where: str) -> schema.DSE:
    """Parse the text form; ``where`` names it in errors.

    Raises:
        UserError: as `read_message`.
    """
    for pattern, name in _OLDER:
        text = pattern.sub(name, text)
    try:
        message = text_format.Parse(text, schema.DSE())
    except text_format.ParseError as error:
        raise UserError(f"{where}:{_parse_problem(error)}") from error
    _forget_signs_of_zero(message)
    return message


def text_of(message: Message) -> str:
    """Return the text form of a message; parsing it gives the message again."""
    return text_format.MessageToString(message)


def bytes_of(message: schema.DSE) -> bytes:
    """Return the binary form of a message, the same bytes for the same message."""
    return message.SerializeToString(deterministic=True)


def _parse_problem(error: text_format.ParseError) -> str:
    line = error.GetLine() or 1
    problem = str(error).split(" : ", 1)[-1].splitlines()[0].rsplit("': ", 1)[-1]
    unknown = re.search(r'Message type "[\w.]*?(\w+)" has no field named "(\w+)"', problem)
    if unknown is None:
        problem = re.sub(r'"[\w.]+\.(\w+)"', r"'\1'", problem)
        return f"{line}: {problem[:1].lower()}{problem[1:].rstrip('.')}"
    owner, field = unknown.groups()
    known = schema.DESCRIPTOR.message_types_by_name[owner].fields_by_name
    return f"{line}: unknown field {field!r} of {owner}{nearest(field, list(known))}"


def _inner_messages(message: Message) -> Iterator[Message]:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            yield from value if field.is_repeated else (value,)


def _unknown_fields(message: Message) -> Iterator[tuple[str, int]]:
    unknown = UnknownFieldSet(message)
    for position in range(len(unknown)):
        yield message.DESCRIPTOR.name, unknown[position].field_number
    for inner in _inner_messages(message):
        yield from _unknown_fields(inner)


def _forget_signs_of_zero(message: Message) -> None:
    """Make each -0 a 0, which is an unset field: solvers of integer programs leave such zeros in solved files."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_FLOAT and value == 0:
            message.ClearField(field.name)
    for inner in _inner_messages(message):
        _forget_signs_of_zero(inner)
