"""Writes decoders of the shapes of Llama 3.1 as ONNX, with weights in a sparse file of which no byte takes room.

``python -m benchmarks.decoder_shapes MODEL LAYERS FILE.onnx``, with `8b`, `70b` or `405b` as the model; 128 tokens,
bfloat16.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

TOKENS = 128
BF16_BYTES = 2


@dataclass(frozen=True, slots=True)
class Shapes:
    """Of a decoder: widths of the residual stream and of the feed-forward part, heads, tokens that are known."""

    layers: int
    hidden: int
    inner: int
    heads: int
    key_heads: int = 8
    width: int = 128
    words: int = 128256


SHAPES = {
    "8b": Shapes(32, 4096, 14336, 32),
    "70b": Shapes(80, 8192, 28672, 64),
    "405b": Shapes(126, 16384, 53248, 128),
}


class _Writer:
    def __init__(self, data: Path) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []
        self.size = 0
        self._data = data

    def weight(self, name: str, *shape: int) -> str:
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.BFLOAT16)
        length = int(np.prod(shape)) * BF16_BYTES
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", self._data.name), ("offset", self.size), ("length", length)):
            tensor.external_data.add(key=key, value=str(text))
        self.tensors.append(tensor)
        self.size += -(-length // 4096) * 4096
        return name

    def integers(self, name: str, *values: int) -> str:
        if all(tensor.name != name for tensor in self.tensors):
            self.tensors.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, op: str, name: str, *inputs: str, **attributes: int | list[int]) -> str:
        node = helper.make_node(op, inputs, [f"{name}_y"], name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return f"{name}_y"


def write_decoder(shapes: Shapes, layers: int, path: Path) -> None:
    """Write a decoder with so many layers, and beside it the sparse file of its weights."""
    data = path.with_suffix(".data")
    build = _Writer(data)
    epsilon = build.weight("epsilon", 1)
    x = build.add("Gather", "embed", build.weight("embedding", shapes.words, shapes.hidden), "tokens")
    cosine, sine = (build.weight(name, TOKENS, shapes.width) for name in ("cosine", "sine"))
    mask, scale = build.weight("mask", TOKENS, TOKENS), build.weight("scale", 1)
    for number in range(layers):
        x = _layer(build, f"layers.{number}", x, shapes, (epsilon, cosine, sine, mask, scale))
    x = _norm(build, "norm", x, shapes.hidden, epsilon)
    logits = build.add("MatMul", "head", x, build.weight("head.weight", shapes.hidden, shapes.words))
    build.nodes[-1].output[0] = "logits"
    assert logits
    graph = helper.make_graph(
        build.nodes,
        f"decoder_{layers}",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [TOKENS])],
        [helper.make_tensor_value_info("logits", TensorProto.BFLOAT16, [TOKENS, shapes.words])],
        build.tensors,
    )
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    with data.open("wb") as file:
        file.truncate(build.size)


def _norm(build: _Writer, name: str, x: str, width: int, epsilon: str) -> str:
    axes = build.integers("last", -1)
    square = build.add("Mul", f"{name}.square", x, x)
    mean = build.add("ReduceMean", f"{name}.mean", square, axes)
    root = build.add("Sqrt", f"{name}.root", build.add("Add", f"{name}.add", mean, epsilon))
    scaled = build.add("Div", f"{name}.divide", x, root)
    return build.add("Mul", f"{name}.scale", scaled, build.weight(f"{name}.weight", width))


def _layer(build: _Writer, name: str, x: str, shapes: Shapes, shared: tuple[str, ...]) -> str:
    epsilon, cosine, sine, mask, scale = shared
    hidden, width, groups = shapes.hidden, shapes.width, shapes.heads // shapes.key_heads

    def product(step: str, operand: str, rows: int, columns: int) -> str:
        return build.add("MatMul", f"{name}.{step}", operand, build.weight(f"{name}.{step}.weight", rows, columns))

    def heads(step: str, operand: str, count: int) -> str:
        shape = build.integers(f"heads{count}", TOKENS, count, width)
        split = build.add("Reshape", f"{name}.{step}.split", operand, shape)
        return build.add("Transpose", f"{name}.{step}.turn", split, perm=[1, 0, 2])

    def rotated(step: str, operand: str) -> str:
        ends = [build.integers(f"at{at}", at) for at in (0, width // 2, width)]
        axis = build.integers("axis2", 2)
        low, high = (
            build.add("Slice", f"{name}.{step}.part{part}", operand, ends[part], ends[part + 1], axis)
            for part in (0, 1)
        )
        negative = build.add("Neg", f"{name}.{step}.negative", high)
        turned = build.add("Concat", f"{name}.{step}.join", negative, low, axis=2)
        direct = build.add("Mul", f"{name}.{step}.cosine", operand, cosine)
        return build.add("Add", f"{name}.{step}.rotated", direct, build.add("Mul", f"{name}.{step}.sine", turned, sine))

    def repeated(step: str, operand: str) -> str:
        apart = build.integers("apart", shapes.key_heads, 1, TOKENS, width)
        wide = build.integers("wide", shapes.key_heads, groups, TOKENS, width)
        whole = build.integers("whole", shapes.heads, TOKENS, width)
        view = build.add("Reshape", f"{name}.{step}.apart", operand, apart)
        return build.add(
            "Reshape", f"{name}.{step}.whole", build.add("Expand", f"{name}.{step}.wide", view, wide), whole
        )

    y = _norm(build, f"{name}.norm1", x, hidden, epsilon)
    q = rotated("q", heads("q", product("query", y, hidden, shapes.heads * width), shapes.heads))
    k = rotated("k", heads("k", product("key", y, hidden, shapes.key_heads * width), shapes.key_heads))
    v = heads("v", product("value", y, hidden, shapes.key_heads * width), shapes.key_heads)
    k = build.add("Transpose", f"{name}.k.last", repeated("k", k), perm=[0, 2, 1])
    scores = build.add("Mul", f"{name}.scaled", build.add("MatMul", f"{name}.scores", q, k), scale)
    weights = build.add("Softmax", f"{name}.softmax", build.add("Add", f"{name}.masked", scores, mask), axis=-1)
    mixed = build.add("MatMul", f"{name}.mixed", weights, repeated("v", v))
    turned = build.add("Transpose", f"{name}.back", mixed, perm=[1, 0, 2])
    flat = build.integers("flat", TOKENS, shapes.heads * width)
    joined = build.add("Reshape", f"{name}.joined", turned, flat)
    x = build.add("Add", f"{name}.first", x, product("output", joined, shapes.heads * width, hidden))
    y = _norm(build, f"{name}.norm2", x, hidden, epsilon)
    gate = product("gate", y, hidden, shapes.inner)
    active = build.add("Mul", f"{name}.silu", gate, build.add("Sigmoid", f"{name}.sigmoid", gate))
    inner = build.add("Mul", f"{name}.gated", active, product("up", y, hidden, shapes.inner))
    return build.add("Add", f"{name}.second", x, product("down", inner, shapes.inner, hidden))


if __name__ == "__main__":
    write_decoder(SHAPES[sys.argv[1]], int(sys.argv[2]), Path(sys.argv[3]))
