"""Generated models: a node of each operator in each operator set, or a few nodes that read each other."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from tests.fuzz.draw import Array, Draw
from tests.fuzz.drawn_node import DrawnNode, Generator, OperatorVersion
from tests.fuzz.operators import (
    elementwise,
    functions,
    indexing,
    layout,
    normalisations,
    products,
    quantisation,
    recurrent,
    reductions,
    sampling,
    spectra,
    updating,
    windows,
)

OLDEST, NEWEST = 7, 25
MOST_NODES = 6
IR_VERSION = 8

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        **elementwise.GENERATORS,
        **functions.GENERATORS,
        **indexing.GENERATORS,
        **layout.GENERATORS,
        **normalisations.GENERATORS,
        **products.GENERATORS,
        **quantisation.GENERATORS,
        **recurrent.GENERATORS,
        **reductions.GENERATORS,
        **sampling.GENERATORS,
        **spectra.GENERATORS,
        **updating.GENERATORS,
        **windows.GENERATORS,
    }
)


@dataclass(frozen=True, slots=True)
class ModelCase:
    """A model and its inputs by name."""

    model: onnx.ModelProto
    feeds: Mapping[str, Array]


@cache
def exists(op_type: str, opset: int) -> bool:
    """Return whether an operator set has an operator."""
    try:
        return not onnx.defs.get_schema(op_type, opset, "").deprecated
    except onnx.defs.SchemaError:
        return False


def generated_model(draw: Draw, nodes: int = 1, opset: int | None = None) -> ModelCase:
    """Return a model that is as ONNX defines it, with so many nodes, of any operator set or of a given one."""
    opsets = range(OLDEST, NEWEST + 1) if opset is None else (opset,)
    op_type = draw.choice([name for name in sorted(GENERATORS) if any(exists(name, each) for each in opsets)])
    opset = draw.choice([each for each in opsets if exists(op_type, each)])
    model = _Growing(draw, opset)
    model.add(op_type)
    known = [name for name in sorted(GENERATORS) if exists(name, opset)]
    for _ in range(nodes - 1):
        model.add(draw.choice(known))
    return model.finished()


class _Growing:
    """A graph that grows by one node at a time."""

    def __init__(self, draw: Draw, opset: int) -> None:
        self._draw = draw
        self._opset = opset
        self._graph = onnx.GraphProto(name="fuzz")
        self._feeds: dict[str, Array] = {}
        self._values: dict[str, tuple[str, tuple[int, ...]]] = {}  # results of nodes: data type and shape
        self._read: set[str] = set()

    def add(self, op_type: str) -> None:
        draw = self._draw
        last = list(self._values.items())
        draw.preferred = draw.choice(last[-2:])[1] if last else None
        number = len(self._graph.node)
        op = OperatorVersion(op_type, self._opset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a special value may overflow where an operand is made of it
            drawn = GENERATORS[op_type](op, draw)
        inputs = [
            "" if value is None else self._operand(f"x{number}_{place}", value, constant=place in drawn.structure)
            for place, value in enumerate(drawn.operands)
        ]
        outputs = [f"y{number}_{place}" if used else "" for place, used in enumerate(drawn.results)]
        node = helper.make_node(op_type, inputs, outputs, name=f"n{number}" if draw.chance(0.9) else "")
        node.attribute.extend(_attributes(drawn))
        self._graph.node.append(node)
        self._note_results(node, drawn, inputs)

    def finished(self) -> ModelCase:
        inner = [name for name in self._values if name in self._read]
        results = [name for node in self._graph.node for name in node.output if name and name not in inner]
        results += [name for name in inner if self._draw.chance(0.1)]
        for name in results:
            self._graph.output.append(_declared(name, *self._values[name]) if name in self._values else _named(name))
        version = helper.make_opsetid("", self._opset)
        return ModelCase(helper.make_model(self._graph, opset_imports=[version], ir_version=IR_VERSION), self._feeds)

    def _operand(self, name: str, value: Array, *, constant: bool) -> str:
        draw = self._draw
        same = [
            known for known, (dtype, shape) in self._values.items() if (dtype, shape) == (value.dtype.name, value.shape)
        ]
        if same and not constant and draw.chance(0.9):
            chosen = draw.choice(same)
            self._read.add(chosen)
            return chosen
        if draw.chance(1 - draw.variable if constant else 0.15):
            self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        else:
            self._feeds[name] = np.asarray(value)
            self._graph.input.append(_declared(name, value.dtype.name, value.shape))
        return name

    def _note_results(self, node: onnx.NodeProto, drawn: DrawnNode, inputs: list[str]) -> None:
        """Infer what the node's results are, from itself alone."""
        constants = [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value, place in zip(inputs, drawn.operands, range(len(inputs)), strict=True)
            if value is not None and name not in self._values and place
        ]
        declared = [
            _declared(name, value.dtype.name, value.shape)
            for name, value in zip(inputs, drawn.operands, strict=True)
            if value is not None
        ]
        unique = list({value.name: value for value in declared}.values())
        graph = helper.make_graph(
            [node], "alone", unique, [_named(name) for name in node.output if name], constants
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=IR_VERSION)
        try:
            inferred = shape_inference.infer_shapes(model, data_prop=True)
        except (shape_inference.InferenceError, RuntimeError):
            return
        for value in inferred.graph.output:
            kind = value.type.tensor_type
            if kind.elem_type and kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
                dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
                self._values[value.name] = (dtype, tuple(dim.dim_value for dim in kind.shape.dim))


def _attributes(drawn: DrawnNode) -> list[onnx.AttributeProto]:
    found = []
    for name, value in drawn.attributes.items():
        empty = isinstance(value, list) and not value
        found.append(helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS if empty else None))
    return found


def _named(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)


def _declared(name: str, dtype: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    if dtype == "bfloat16":
        return helper.make_tensor_value_info(name, onnx.TensorProto.BFLOAT16, shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
