"""A language model's graph from an ONNX file: initializers are weights, inputs named for a past are its cache."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dfcompile.errors import UserError
from dfcompile.host.printable import reason_of
from dfcompile.host.stages import stage, work_of
from dfcompile.language_models.graph.kernels import CACHE, INPUT, PARAMETER, Trace, TraceNode

if TYPE_CHECKING:
    import onnx

_SAME = {
    "Concat": "cat", "Expand": "expand", "Reshape": "reshape", "Transpose": "transpose", "Unsqueeze": "unsqueeze",
    "Squeeze": "reshape", "Flatten": "reshape", "Cast": "to", "Identity": "alias", "MatMul": "matmul", "TopK": "topk",
    "Gather": "gather",
}  # fmt: skip
_REFUSED = (
    "Conv", "ConvInteger", "ConvTranspose", "DecoderMaskedMultiHeadAttention", "DynamicQuantizeMatMul", "Einsum",
    "FusedGemm", "FusedMatMul", "GRU", "LSTM", "MatMulBnb4", "MatMulInteger", "MatMulIntegerToFloat", "MoE",
    "PackedAttention", "QAttention", "QGemm", "QLinearConv", "QLinearMatMul", "QMoE", "RNN", "SparseAttention",
)  # fmt: skip
_PAST = ("past", "cache")
Shapes = Mapping[str, tuple[int, ...]]


# Of attentions: the input that is the past's keys, before its values, and attributes with heads of queries and of keys.
_ATTENTIONS = {
    "Attention": (4, "q_num_heads", "kv_num_heads"),
    "com.microsoft.MultiHeadAttention": (6, "num_heads", "num_heads"),
    "com.microsoft.GroupQueryAttention": (3, "num_heads", "kv_num_heads"),
}


def onnx_trace(path: Path, dims: Mapping[str, int]) -> Trace:
    """Return the graph in an ONNX file.

    Args:
        path: of the file.
        dims: sizes of symbolic dimensions by name.

    Raises:
        UserError: the file cannot be read, has a dimension without a size, or an operator that multiplies in a way that
            is not read here.
    """
    import onnx
    from google.protobuf.message import DecodeError

    with stage(f"reading {path}"), work_of(2) as work:
        with work.part(1):
            try:
                model = onnx.load(str(path), load_external_data=False)
            except OSError as error:
                raise UserError(f"--from-onnx {str(path)!r}: cannot be read: {reason_of(error)}") from error
            except DecodeError as error:
                raise UserError(f"--from-onnx {str(path)!r}: not an ONNX model, or a truncated one") from error
        with work.part(1):
            return trace_of_model(model, path.parent, dims)


def trace_of_model(model: "onnx.ModelProto", folder: Path, dims: Mapping[str, int]) -> Trace:
    """Return the graph of a model in memory; its external data lies in a folder.

    Raises:
        UserError: as `onnx_trace`.
    """
    from dfcompile.frontend.model import ReadOptions
    from dfcompile.frontend.normaliser import normalise
    from dfcompile.frontend.normaliser.control_flow import without_control_flow
    from dfcompile.frontend.normaliser.opset import opset_of, with_one_normalisation
    from dfcompile.frontend.onnx.draft_reading import read_draft
    from dfcompile.frontend.onnx.external_data import mapped_data
    from dfcompile.frontend.onnx.origins import name_nodes
    from dfcompile.frontend.validation.typed_values import checked_types

    opset_of(model)  # whether its operators can be read
    read = read_draft(model, ReadOptions(dims=dims), mapped_data(model, folder))
    draft = normalise(name_nodes(with_one_normalisation(without_control_flow(read)))).draft
    shapes = {name: kind.known_shape for name, kind in checked_types(draft).items() if kind.known_shape is not None}
    nodes = [TraceNode(name, PARAMETER, (), tuple(value.shape)) for name, value in draft.constants.items()]
    for name in draft.input_names:
        is_past = any(word in name.lower() for word in _PAST) and len(shapes[name]) > 2
        nodes.append(TraceNode(name, CACHE if is_past else INPUT, (), shapes[name]))
    for node in draft.proto.graph.node:
        nodes += _nodes(node, shapes)
    return Trace(tuple(nodes))


def _nodes(node: "onnx.NodeProto", shapes: Shapes) -> Iterator[TraceNode]:
    name = node.op_type.rpartition(".")[2]  # contributed operators are called by their full name
    if name in _REFUSED or node.op_type == "com.microsoft.Attention":
        known = "MatMul, Gemm, MatMulNBits, Attention, GroupQueryAttention or MultiHeadAttention"
        raise UserError(f"--from-onnx: node {node.name!r}: found {node.op_type} against {known}")
    scope = node.name.strip("/").replace("/", ".").rpartition(".")[0]
    read = tuple(name for name in node.input if name)
    if node.op_type in _ATTENTIONS:
        yield from _attention(node, shapes, scope)
    elif node.op_type == "Gemm":
        first, second = read[:2]
        if _attribute(node, "transA", 0):
            flipped = f"{node.name}@A"
            yield TraceNode(flipped, "transpose", (first,), shapes[first][::-1], scope)
            first = flipped
        op = "linear" if _attribute(node, "transB", 0) else "mm"
        yield TraceNode(node.output[0], op, (first, second), shapes[node.output[0]], scope)
    elif name == "MatMulNBits":
        weights = f"{node.name}@B"
        yield TraceNode(weights, PARAMETER, (), (_attribute(node, "N", 1), _attribute(node, "K", 1)), scope)
        yield TraceNode(node.output[0], "linear", (read[0], weights), shapes[node.output[0]], scope)
    else:
        op = _SAME.get(node.op_type, name.lower())
        data = read if op in ("cat", "matmul", "gather") or op not in _SAME.values() else read[:1]
        for made in filter(None, node.output):
            yield TraceNode(made, op, data, shapes.get(made, ()), scope)


def _attention(node: "onnx.NodeProto", shapes: Shapes, scope: str) -> Iterator[TraceNode]:
    """Yield the cache that grows, its copies for groups of heads, and the attention, as an exported graph has them."""
    first_past, *attributes = _ATTENTIONS[node.op_type]
    query, key, value = (_at(node.input, place) for place in range(3))
    heads, kv_heads = (_attribute(node, name, 0) for name in attributes)
    if not key or not value:
        raise UserError(f"--from-onnx: node {node.name!r}: found queries, keys and values in one operand against three")
    counts = {query: heads, key: kv_heads, value: kv_heads}
    four = {name: _of_heads(shapes[name], count) for name, count in counts.items()}
    batch, heads, rows, _ = four[query]
    yield TraceNode(f"{node.name}@Q", "reshape", (query,), four[query], scope)
    read = [f"{node.name}@Q"]
    for made, name in enumerate((key, value), start=1):
        source, shape = f"{node.name}@{made}", four[name]
        yield TraceNode(source, "reshape", (name,), shape, scope)
        past, present = _at(node.input, first_past + made - 1), _at(node.output, made)
        if past:
            context = shapes[present][2] if present else shapes[past][2] + shape[2]
            shape, before, source = (batch, shape[1], context, shape[3]), source, present or f"{source}+"
            yield TraceNode(source, "cat", (past, before), shape, scope)
        elif present:
            yield TraceNode(present, "alias", (source,), shape, scope)
        if shape[1] != heads:
            held, rest = shape[1], shape[2:]
            extents = {"unsqueeze": (held, 1), "expand": (held, heads // held), "reshape": (heads,)}
            for op, copied in extents.items():
                yield TraceNode(f"{source}@{op}", op, (source,), (batch, *copied, *rest), scope)
                source = f"{source}@{op}"
        read.append(source)
    width = four[value][3]
    yield TraceNode(f"{node.name}@Y", "scaled_dot_product_attention", tuple(read), (batch, heads, rows, width), scope)
    yield TraceNode(node.output[0], "reshape", (f"{node.name}@Y",), shapes[node.output[0]], scope)


def _at(names: Sequence[str], place: int) -> str:
    """Return the name at a place; empty where the operator has none."""
    return names[place] if place < len(names) else ""


def _of_heads(shape: tuple[int, ...], heads: int) -> tuple[int, int, int, int]:
    """Return ``[batch, heads, tokens, elements]`` of ``[batch, tokens, heads * elements]``, or of itself."""
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    return shape[0], heads, shape[1], shape[2] // heads


def _attribute(node: "onnx.NodeProto", name: str, default: int) -> int:
    return next((int(found.i) for found in node.attribute if found.name == name), default)
