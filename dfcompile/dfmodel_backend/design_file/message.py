"""Design files as messages of DFModel's format [ko24]: text or binary, of every age that is understood."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

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
_COMMENT = re.compile(r"#.*|\"[^\"\n]*\"")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")  # never in text, always in a message with a kernel

_Parsed = TypeVar("_Parsed", schema.DSE, schema.Oldest_DSE)


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
    if is_oldest(_COMMENT.sub("", text)):
        return translated(_parsed(text, schema.Oldest_DSE(), where), where)
    for pattern, name in _OLDER:
        text = pattern.sub(name, text)
    message = _parsed(text, schema.DSE(), where)
    _forget_signs_of_zero(message)
    return message


def text_of(message: Message) -> str:
    """Return the text form of a message; parsing it gives the message again."""
    return text_format.MessageToString(message)


def bytes_of(message: schema.DSE) -> bytes:
    """Return the binary form of a message, the same bytes for the same message."""
    return message.SerializeToString(deterministic=True)


def _parsed(text: str, message: _Parsed, where: str) -> _Parsed:
    try:
        return text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise UserError(f"{where}:{_parse_problem(error)}") from error


def _parse_problem(error: text_format.ParseError) -> str:
    line = error.GetLine() or 1
    problem = str(error).split(" : ", 1)[-1].splitlines()[0].rsplit("': ", 1)[-1]
    unknown = re.search(r'Message type "[\w.]*?(\w+)" has no field named "(\w+)"', problem)
    if unknown is None:
        problem = re.sub(r'"[\w.]+\.(\w+)"', r"'\1'", problem)
        return f"{line}: {problem[:1].lower()}{problem[1:].rstrip('.')}"
    owner, field = unknown.groups()
    known = schema.DESCRIPTOR.message_types_by_name[owner].fields_by_name
    age = " in the oldest format" if owner.startswith("Oldest_") else ""
    return f"{line}: unknown field {field!r} of {owner.removeprefix('Oldest_')}{age}{nearest(field, list(known))}"


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


_NAMES = re.compile(r"(?:^|[\s{};,])(training|topo|batch_gemm_elementwise_outer_m_k_n)\s*[:{<]")

_Choice = TypeVar("_Choice", schema.KernelKind, schema.Direction)

# What the tool of that age did without asking the file.
WORD_BYTES = 2
NO_LIMIT_GB_PER_S = float(2**63)  # bandwidth of links that a lone chip does not have

# Topology to today's name and the parallelism of its dimensions. The others have no equal today: dimensions that share
# tensor parallelism, or fully connected ones inside others.
_TOPOLOGIES = {
    "SINGLE_CHIP": ("r", ("TP",)),
    "RING_1D": ("r", ("TP",)),
    "FC_1D": ("fc", ("TP",)),
    "TORUS_2D": ("r_r", ("TP", "PP")),
    "DGX_2": ("sw_sw", ("TP", "PP")),
    "DGX_2_2D": ("sw_sw", ("TP", "PP")),
}


def is_oldest(text: str) -> bool:
    """Return whether a text without comments and quoted words has fields that only the oldest age had."""
    return _NAMES.search(text) is not None


def translated(oldest: schema.Oldest_DSE, where: str) -> schema.DSE:
    """Return a message of the oldest age in today's fields.

    A batch is one input, of two-byte words, cut along its columns; compute, memory and network overlap; and cores are
    given to kernels one by one: so the tool of that age had it.

    Raises:
        UserError: a field contradicts another, or has no equal today.
    """
    message = schema.DSE()
    for kernel in oldest.dataflow_graph.kernels:
        _translate_kernel(kernel, message.dataflow_graph.kernels.add(), where)
    message.dataflow_graph.connections.extend(oldest.dataflow_graph.connections)
    _translate_system(oldest.system, message.system, where)
    for price in ("link_unit_price", "switch_unit_price", "dram_unit_price"):
        setattr(message.cost, price, getattr(oldest.cost, price))
    _translate_training(oldest.training, message.execution, where)
    return message


def _translate_kernel(oldest: schema.Oldest_Kernel, kernel: schema.Kernel, where: str) -> None:
    where = f"{where}: kernel {oldest.name!r}"
    if not oldest.HasField("batch_gemm_elementwise_outer_m_k_n"):
        raise UserError(f"{where}: no variant against batch_gemm_elementwise_outer_m_k_n")
    old = oldest.batch_gemm_elementwise_outer_m_k_n
    kernel.name, kernel.id, kernel.config = oldest.name, oldest.id, oldest.config
    kernel.type = _either("type", oldest.type, old.type, where)
    kernel.fwd_bwd = _either("fwd_bwd", oldest.fwd_bwd, old.fwd_bwd, where)
    sizes = ("input_tensor_1_size", "input_tensor_2_size", "weight_tensor_size")
    first, second, weight = (_size(field, getattr(old, field), where) for field in sizes)
    if weight and second:
        raise UserError(f"{where}: found both 'weight_tensor_size' and 'input_tensor_2_size' against one of them")
    variant: Variant
    if kernel.type == schema.SYSTOLIC and weight:
        variant = kernel.gemm_input1_weight
        variant.K, variant.input_tensor_size, variant.weight_tensor_size = old.K, first, weight
    elif kernel.type == schema.SYSTOLIC and second:
        variant = kernel.gemm_input1_input2
        variant.K, variant.input_tensor_1_size, variant.input_tensor_2_size = old.K, first, second
    elif kernel.type == schema.SYSTOLIC:
        raise UserError(f"{where}: SYSTOLIC, but neither 'weight_tensor_size' nor 'input_tensor_2_size' against one")
    elif weight:
        raise UserError(f"{where}: field 'weight_tensor_size': found {weight:g} against -1 of a SIMD kernel")
    elif old.K > 1:
        raise UserError(f"{where}: field 'K': found {old.K} against 1 of a SIMD kernel")
    elif second:
        variant = kernel.elementwise_input1_input2
        variant.input_tensor_1_size, variant.input_tensor_2_size = first, second
    else:
        variant = kernel.elementwise_input1
        variant.input_tensor_size = first
    variant.outer, variant.M, variant.N = old.outer, old.M, old.N
    variant.output_tensor_size = old.output_tensor_size
    variant.sharding, variant.tiling = old.sharding, schema.N_TILING


def _either(field: str, outer: _Choice, inner: _Choice, where: str) -> _Choice:
    """Return a field that files of that age have in the kernel or in its variant."""
    if outer and inner and outer != inner:
        raise UserError(f"{where}: field {field!r}: found {outer} in the kernel and {inner} in its variant against one")
    return outer or inner


def _size(field: str, size: float, where: str) -> float:
    if size < 0 and size != -1:
        raise UserError(f"{where}: field {field!r}: found {size:g} against a size, or -1 for none")
    return max(size, 0.0)


def _translate_system(oldest: schema.Oldest_System, system: schema.System, where: str) -> None:
    old = oldest.accelerator
    system.num_chip = oldest.num_chip
    chip = system.accelerator
    chip.core, chip.systolic_width, chip.systolic_height = old.core, old.systolic_width, old.systolic_height
    chip.sram_cap, chip.freq = old.sram_cap, old.freq
    system.memory.dram_bw, system.memory.dram_cap = old.dram_bw, old.dram_cap
    name, links = _topology(oldest, where)
    if name not in _TOPOLOGIES:
        raise UserError(f"{where}: topology {name} of the oldest format: found no equal against today's topologies")
    shape, parallelism = _TOPOLOGIES[name]
    target, lone = getattr(system, shape), name == "SINGLE_CHIP"
    for axis, word in zip("xyz", parallelism, strict=False):
        setattr(target, axis, 1 if lone else getattr(links, axis))
        setattr(target, f"link_bw_{axis}", NO_LIMIT_GB_PER_S if lone else getattr(links, f"link_bw_{axis}"))
        setattr(target, f"par_{axis}", word)
    for axis in "xyz" if lone else "xyz"[len(parallelism) :]:
        for field in (axis, f"link_bw_{axis}"):
            value = getattr(links, field)
            if value > (lone and field == axis):
                raise UserError(f"{where}: field 'system.{field}': found {value:g} against none of {name}")


def _topology(oldest: schema.Oldest_System, where: str) -> tuple[str, schema.Oldest_System | schema.Oldest_Links]:
    variant = oldest.WhichOneof("topology_variant")
    if variant is not None and oldest.topo:
        raise UserError(f"{where}: found both 'system.topo' and 'system.{variant}' against one of them")
    if variant is not None:
        return variant.upper(), getattr(oldest, variant)
    values = schema.Oldest_System.Topology.DESCRIPTOR.values_by_number
    if not oldest.topo or oldest.topo not in values:
        raise UserError(f"{where}: field 'system.topo': found {oldest.topo or 'none'} against {', '.join(_TOPOLOGIES)}")
    return values[oldest.topo].name, oldest


def _translate_training(oldest: schema.Oldest_Training, execution: schema.Execution, where: str) -> None:
    llm = execution.llm
    llm.hidden_dim, llm.head_dim, llm.num_head = oldest.hidden_dim, oldest.head_dim, oldest.num_head
    llm.seq_len, llm.num_layer, llm.tile_size = oldest.seq_len, oldest.num_layer, oldest.seq_tile_size
    llm.global_batch_size = llm.micro_batch_size = llm.num_layer_in_graph = 1
    styles = {
        schema.Oldest_Training.FLASHATTENTION: schema.DATAFLOW,
        schema.Oldest_Training.KERNEL_BY_KERNEL: schema.KERNEL_BY_KERNEL,
    }
    if oldest.optimization not in styles:
        raise UserError(
            f"{where}: field 'training.optimization': found {oldest.optimization or 'none'} "
            "against FLASHATTENTION or KERNEL_BY_KERNEL"
        )
    execution.execution_style = styles[oldest.optimization]
    execution.num_config = oldest.num_config
    execution.overlap, execution.word = schema.PERFECT_OVERLAP, WORD_BYTES
