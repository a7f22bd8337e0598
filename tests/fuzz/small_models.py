"""Small models of what is mapped every day: convolutions, layers of a perceptron, attention, reductions, mixtures."""

from dataclasses import dataclass, field

import numpy as np

from tests.fuzz.draw import Array, Draw
from tests.onnx_text import model_from_text


@dataclass
class _Graph:
    """A chain of nodes that is written step by step.

    Attributes:
        shape: of the last result.
        last: its name.
        lines: of nodes.
        weights: by name.
    """

    shape: tuple[int, ...]
    last: str = "x"
    lines: list[str] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.ones(shape, np.float32)
        return name

    def put(self, call: str, shape: tuple[int, ...]) -> str:
        """Append a node, and return the name of its result."""
        self.last, self.shape = f"y{len(self.lines)}", shape
        self.lines.append(f"{self.last} = {call}")
        return self.last

    def product(self, columns: int) -> None:
        self.put(f"MatMul({self.last}, {self.weight(self.shape[-1], columns)})", (*self.shape[:-1], columns))


def small_model(draw: Draw, largest: int = 64) -> bytes:
    """Return an .onnx file of one to five operators.

    Args:
        draw: that everything follows from.
        largest: extent of a layer; of images, windows and heads less.
    """
    return FAMILIES[draw.choice(sorted(FAMILIES))](draw, largest)


def _convolutions(draw: Draw, largest: int) -> bytes:
    graph, before = _image(draw, largest)
    return _file(graph, before)


def _mixed(draw: Draw, largest: int) -> bytes:
    """Return a convolution or two, and a layer behind them."""
    graph, before = _image(draw, largest)
    graph.put(f"Flatten({graph.last})", (1, int(np.prod(graph.shape))))
    graph.product(draw.integer(1, largest // 2))
    return _file(graph, before)


def _image(draw: Draw, largest: int) -> tuple[_Graph, tuple[int, ...]]:
    size = draw.integer(3, max(largest // 6, 4))
    shape = (1, draw.integer(1, max(largest // 8, 2)), size, size)
    graph = _Graph(shape)
    for _ in range(draw.integer(1, 2)):
        _, channels, size, _ = graph.shape
        filters, kernel = draw.integer(1, max(largest // 6, 2)), min(draw.choice([1, 3, 3, 5]), size)
        pad, stride = draw.choice([0, kernel // 2]), draw.choice([1, 1, 2])
        attributes = f"kernel_shape=[{kernel},{kernel}], pads=[{pad},{pad},{pad},{pad}], strides=[{stride},{stride}]"
        size = (size + 2 * pad - kernel) // stride + 1
        weight = graph.weight(filters, channels, kernel, kernel)
        graph.put(f"Conv<{attributes}>({graph.last}, {weight})", (1, filters, size, size))
        match draw.choice(["nothing", "Relu", "Add", "MaxPool"]):
            case "Relu":
                graph.put(f"Relu({graph.last})", graph.shape)
            case "Add":
                graph.put(f"Add({graph.last}, {graph.last})", graph.shape)
            case "MaxPool" if size > 1:
                graph.put(f"MaxPool<kernel_shape=[2,2]>({graph.last})", (1, filters, size - 1, size - 1))
    return graph, shape


def _perceptron(draw: Draw, largest: int) -> bytes:
    shape = (draw.choice([1, 2, 8, largest // 2]), draw.integer(2, largest))
    graph = _Graph(shape)
    for _ in range(draw.integer(1, 3)):
        graph.product(draw.integer(1, largest))
        after = draw.choice(["", "Relu", "Tanh", "Softmax"])
        if after:
            graph.put(f"{after}({graph.last})", graph.shape)
    return _file(graph, shape)


def _attention(draw: Draw, largest: int) -> bytes:
    shape = heads, tokens, width = draw.choice([1, 2, 3]), draw.integer(2, largest // 4), draw.integer(2, largest // 4)
    graph = _Graph(shape)
    graph.put("Transpose<perm=[0,2,1]>(x)", (heads, width, tokens))
    graph.put(f"MatMul(x, {graph.last})", (heads, tokens, tokens))
    if draw.chance(0.7):
        graph.put(f"Softmax<axis=-1>({graph.last})", graph.shape)
    graph.put(f"MatMul({graph.last}, x)", shape)
    if draw.chance(0.3):
        graph.put(f"Add({graph.last}, x)", shape)
    return _file(graph, shape)


def _reductions(draw: Draw, largest: int) -> bytes:
    shape = rows, columns = draw.choice([1, 2, 5, 16]), draw.integer(2, 4 * largest)
    graph = _Graph(shape)
    if draw.chance(0.5):
        graph.put(f"LayerNormalization({graph.last}, {graph.weight(columns)})", shape)
    match draw.choice(["softmax", "rows", "all", "columns"]):
        case "softmax":
            graph.put(f"Softmax<axis=-1>({graph.last})", shape)
            if draw.chance(0.5):
                graph.product(draw.integer(1, largest // 4))
        case "rows":
            graph.put(f"ReduceSum<keepdims=1>({graph.last}, rows)", (rows, 1))
            graph.weights["rows"] = np.array([1])
        case "columns":
            graph.put(f"ReduceMax<keepdims=1>({graph.last}, columns)", (1, columns))
            graph.weights["columns"] = np.array([0])
        case _:
            graph.put(f"ReduceSum<keepdims=1>({graph.last})", (1, 1))
    return _file(graph, shape)


FAMILIES = {
    "attention": _attention, "convolutions": _convolutions, "mixed": _mixed, "perceptron": _perceptron,
    "reductions": _reductions,
}  # fmt: skip


_BEHIND = ("Relu", "Softmax", "LayerNormalization", "Add", "ReduceSum", "ReduceMax", "MatMul")


def tiny_model(draw: Draw) -> bytes:
    """Return an .onnx file of one to four operators, so small that all ways to lower and divide it can be tried."""
    first = draw.choice(["convolution", "product", "product", "matrix"])
    shape: tuple[int, ...]
    if first == "convolution":
        shape = (1, draw.integer(1, 2), size := draw.integer(2, 4), size)
        graph, filters, kernel = _Graph(shape), draw.integer(1, 3), draw.integer(1, min(size, 3))
        pad = draw.choice([0, kernel // 2])
        size += 2 * pad + 1 - kernel
        weight = graph.weight(filters, shape[1], kernel, kernel)
        attributes = f"kernel_shape=[{kernel},{kernel}], pads=[{pad},{pad},{pad},{pad}]"
        graph.put(f"Conv<{attributes}>(x, {weight})", (1, filters, size, size))
    else:
        shape = draw.integer(1, 5), draw.choice([2, 3, 5, 6, 8, 11])
        graph = _Graph(shape)
        if first == "product":
            graph.product(draw.integer(1, 4))
    for _ in range(draw.choice([0, 1, 1, 2, 3]) if graph.lines else draw.integer(1, 2)):
        _behind(graph, draw.choice(_BEHIND))
    return _file(graph, shape)


def smallest_model(draw: Draw) -> bytes:
    """Return an .onnx file of one to three operators on a few elements: all orders of its tasks can be tried."""
    shape = draw.integer(1, 2), draw.integer(2, 4)
    graph = _Graph(shape)
    if draw.chance(0.5):
        graph.product(draw.integer(1, 2))
    for _ in range(draw.integer(0, 1) if graph.lines else draw.integer(1, 2)):
        _behind(graph, draw.choice(_BEHIND))
    return _file(graph, shape)


def _behind(graph: _Graph, op: str) -> None:
    *others, rows, columns = graph.shape
    match op:
        case "Softmax":
            graph.put(f"Softmax<axis=-1>({graph.last})", graph.shape)
        case "LayerNormalization":
            graph.put(f"LayerNormalization({graph.last}, {graph.weight(columns)})", graph.shape)
        case "Add":
            graph.put(f"Add({graph.last}, {graph.last})", graph.shape)
        case "ReduceSum":
            graph.weights["rows"] = np.array([-1])
            graph.put(f"ReduceSum<keepdims=1>({graph.last}, rows)", (*others, rows, 1))
        case "ReduceMax":
            graph.weights["columns"] = np.array([-2])
            graph.put(f"ReduceMax<keepdims=1>({graph.last}, columns)", (*others, 1, columns))
        case "MatMul":
            graph.product(2)
        case _:
            graph.put(f"{op}({graph.last})", graph.shape)


def _file(graph: _Graph, shape: tuple[int, ...]) -> bytes:
    sizes, unknown = (",".join(map(str, each)) for each in (shape, ["?"] * len(graph.shape)))
    text = f"g (float[{sizes}] x) => (float[{unknown}] {graph.last}) {{ {' '.join(graph.lines)} }}"
    return bytes(model_from_text(text, **graph.weights).SerializeToString())
