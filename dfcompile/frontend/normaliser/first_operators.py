"""The first operator sets: what operators meant before version 7, said by operators of version 7.

ONNX's version converter leaves most of these as they are, or drops what an attribute says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np
import onnx
from msgspec import Struct
from onnx import checker, helper, numpy_helper, shape_inference

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import OWN_DOMAINS, Constant, Constants, Draft, copied
from dfcompile.frontend.onnx.schemas import fits_schema
from dfcompile.frontend.onnx.shapes import shape_of

SINCE = 7  # version of the operators that these become
_LARGEST_TOLD = 1024  # elements of a constant that may say what a shape is

Shape = tuple[int | None, ...]


class _Old(Struct, frozen=True):
    """A node of the first operator sets, and what is known of the values before it.

    Attributes:
        node: of version 7 but for what a rule changes.
        opset: of the model.
        shapes: of values.
        constants: of the model.
    """

    node: onnx.NodeProto
    opset: int
    shapes: Mapping[str, Shape]
    constants: Constants

    def shape(self, position: int) -> Shape:
        """Return the shape of an operand.

        Raises:
            UserError: not even its rank is known.
        """
        found = self.shapes.get(self.node.input[position]) if position < len(self.node.input) else None
        if found is None:
            raise self.wrong(f"the rank of operand {position} is not known")
        return found

    def constant(self, position: int) -> tuple[int, ...]:
        """Return the integers of an operand.

        Raises:
            UserError: it is computed.
        """
        found = self.constants.get(self.node.input[position]) if position < len(self.node.input) else None
        if found is None:
            raise self.wrong(f"operand {position} is computed by the model against a constant")
        return tuple(int(value) for value in np.ravel(found))

    def taken(self, name: str) -> onnx.AttributeProto | None:
        """Return an attribute, which the node then has no more."""
        found = next((entry for entry in self.node.attribute if entry.name == name), None)
        if found is not None:
            self.node.attribute.remove(found)
        return found

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is an integer, which the node then has no more."""
        found = self.taken(name)
        return default if found is None else int(found.i)

    def give(self, name: str, value: float | str | Sequence[int] | Sequence[float]) -> None:
        """Give the node an attribute."""
        self.node.attribute.append(helper.make_attribute(name, value))

    def wrong(self, found: str) -> UserError:
        """Return the error that names the node."""
        where = self.node.name or self.node.output[0]
        return UserError(f"node {where!r}: {self.node.op_type} of operator set {self.opset}: {found}")


_Part = onnx.NodeProto | onnx.TensorProto
_Rule = Callable[[_Old], Iterator[_Part] | None]  # nodes and constants before the node, which it changes in place


def without_first_operators(draft: Draft, opset: int) -> tuple[list[onnx.NodeProto], dict[str, Constant]]:
    """Return the nodes of a model of operator set 1 to 6 as nodes of version 7, and the constants that they read.

    ``y = Add<broadcast=1, axis=1>(a, b)`` becomes ``t = Unsqueeze<axes=[1, 2]>(b); y = Add(a, t)``.

    Args:
        draft: of the model, whose nodes hold no graphs.
        opset: 1 to 6.

    Raises:
        UserError: a node trains, or what it means depends on what is not known.
    """
    types = {value.name: value.type for value in draft.proto.graph.input}
    for name, value in draft.constants.items():
        types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
    known = dict(draft.constants)
    found: list[onnx.NodeProto] = []
    for node in draft.proto.graph.node:
        known_shapes = {name: shape_of(types[name]) for name in node.input if name in types}
        shapes = {name: shape for name, shape in known_shapes.items() if shape is not None}
        for each in _upgraded(node, opset, shapes, known):
            if isinstance(each, onnx.TensorProto):
                known[each.name] = numpy_helper.to_array(each)
                types[each.name] = helper.make_tensor_type_proto(each.data_type, each.dims)
            else:
                found.append(each)
                types.update(_inferred(each, types, known))
    return found, known


def _upgraded(node: onnx.NodeProto, opset: int, shapes: Mapping[str, Shape], constants: Constants) -> Iterator[_Part]:
    changed = copied(node)
    old = _Old(changed, opset, shapes, constants)
    if node.domain in OWN_DOMAINS and fits_schema(node, opset):
        old.taken("consumed_inputs")  # where a result might be put
        for op_types, until, rule in _RULES:
            if node.op_type in op_types and opset < until:
                yield from rule(old) or ()
    yield changed


def _inferred(
    node: onnx.NodeProto, types: dict[str, onnx.TypeProto], constants: Constants
) -> dict[str, onnx.TypeProto]:
    operands = {name: types[name] for name in node.input if name in types}
    if any(name and name not in types for name in node.input):
        return {}
    short = [name for name in operands if name in constants and constants[name].size <= _LARGEST_TOLD]
    told = {name: numpy_helper.from_array(constants[name], name) for name in short}
    try:
        schema = onnx.defs.get_schema(node.op_type, SINCE, node.domain)
        sets = [helper.make_opsetid("", SINCE)]
        return shape_inference.infer_node_outputs(schema, node, operands, told, opset_imports=sets)
    except (onnx.defs.SchemaError, shape_inference.InferenceError, checker.ValidationError, RuntimeError, ValueError):
        return {}  # what is wrong is said where the model is checked


def _reshaped(old: _Old, position: int, axes: range) -> Iterator[_Part]:
    """Give an operand axes of extent 1."""
    if not axes:
        return
    name = old.node.input[position]
    result = f"{old.node.output[0]}.{name}.aligned"
    made = f"{old.node.name}.unsqueeze" if old.node.name else ""
    yield helper.make_node("Unsqueeze", [name], [result], name=made, axes=list(axes))
    old.node.input[position] = result


def _constant(old: _Old, values: Sequence[int]) -> Iterator[_Part]:
    """Give the node one more operand: integers."""
    name = f"{old.node.output[0]}.given"
    yield numpy_helper.from_array(np.asarray(values, np.int64), name)
    old.node.input.append(name)


def _broadcast(old: _Old) -> Iterator[_Part]:
    is_broadcast, axis = old.integer("broadcast", 0) != 0, old.taken("axis")
    if not is_broadcast:
        left, right = (old.shapes.get(name) for name in old.node.input[:2])
        if left is not None and right is not None and len(left) != len(right):
            raise old.wrong(f"operands of {len(left)} and {len(right)} dimensions against attribute 'broadcast'")
        return
    if axis is None:
        return  # the last dimensions are equal, as in numpy
    left, right = old.shape(0), old.shape(1)
    if None not in right and prod(size or 0 for size in right) == 1:
        return
    first = axis.i + len(left) if axis.i < 0 else axis.i
    behind = len(left) - first - len(right)
    if first < 0 or behind < 0:
        raise old.wrong(f"axis {axis.i} against operands of {len(left)} and {len(right)} dimensions")
    yield from _reshaped(old, 1, range(len(right), len(right) + behind))


def _slope(old: _Old) -> Iterator[_Part]:
    """One number per channel, which is the second axis."""
    slope = old.shape(1)
    if len(slope) == 1 and slope != (1,):
        yield from _reshaped(old, 1, range(1, len(old.shape(0)) - 1))


def _in_test(old: _Old) -> None:
    if old.integer("is_test", 0) == 0:
        raise old.wrong("attribute 'is_test' is 0, which trains, against 1")


def _cast(old: _Old) -> None:
    name = old.taken("to")
    text = "" if name is None else name.s.decode("utf-8", errors="replace").upper()
    if text not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  # it is no mapping
        raise old.wrong(f"attribute 'to' is {text!r} against the name of an element type")
    old.give("to", onnx.TensorProto.DataType.Value(text))


def _drop(name: str, old: _Old) -> None:
    """Take away an attribute that says nothing that the others do not."""
    old.taken(name)


def _say(defaults: Mapping[str, float], old: _Old) -> None:
    """Say attributes that had another value by default."""
    given = {entry.name for entry in old.node.attribute}
    for name, value in defaults.items():
        if name not in given:
            old.give(name, value)


def _power(old: _Old) -> None:
    given = old.taken("p")
    power = 2.0 if given is None else given.f
    if power != int(power):
        raise old.wrong(f"attribute 'p' is {power} against an integer")
    old.give("p", int(power))


def _pads(old: _Old) -> None:
    given = old.taken("paddings")
    if given is not None:
        old.give("pads", list(given.ints))


def _shape_operand(old: _Old) -> Iterator[_Part]:
    given = old.taken("shape")
    if given is None:
        raise old.wrong("no attribute 'shape'")
    yield from _constant(old, list(given.ints))


def _split(old: _Old) -> None:
    if len(old.node.input) > 1 and old.node.input[1]:
        old.taken("split")
        old.give("split", old.constant(1))
    del old.node.input[1:]


def _tile(old: _Old) -> Iterator[_Part]:
    (count, *_), (axis, *_), rank = old.constant(1), old.constant(2), len(old.shape(0))
    if not -rank <= axis < rank:
        raise old.wrong(f"axis {axis} against {rank} dimensions")
    del old.node.input[1:]
    yield from _constant(old, [count if at == axis % rank else 1 for at in range(rank)])


def _upsample(old: _Old) -> None:
    height, width = old.taken("height_scale"), old.taken("width_scale")
    if height is None or width is None:
        raise old.wrong("attributes against 'height_scale' and 'width_scale'")
    old.give("scales", [1.0, 1.0, height.f, width.f])


_BINARY = frozenset(["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"])
_RECURRENT = frozenset(["GRU", "LSTM", "RNN"])
_POWERS = frozenset(["GlobalLpPool", "LpPool"])
# Operators, the version in which they came to mean what they mean in version 7, and what was to be said before.
_RULES: tuple[tuple[frozenset[str], int, _Rule], ...] = (
    (_BINARY, 7, _broadcast),
    (frozenset(["BatchNormalization", "Dropout"]), 7, _in_test),
    (frozenset(["Cast"]), 6, _cast),
    (frozenset(["Concat"]), 4, partial(_say, {"axis": 1})),
    (frozenset(["Gemm"]), 7, partial(_drop, "broadcast")),
    (_POWERS, 2, _power),
    (frozenset(["PRelu"]), 7, _slope),
    (frozenset(["Pad"]), 2, _pads),
    (_RECURRENT, 7, partial(_drop, "output_sequence")),  # whether a result is used says the same
    (frozenset(["Reshape"]), 5, _shape_operand),
    (frozenset(["Selu"]), 6, partial(_say, {"alpha": 1.6732, "gamma": 1.0507})),
    (frozenset(["Split"]), 2, _split),
    (frozenset(["Tile"]), 6, _tile),
    (frozenset(["Upsample"]), 7, _upsample),
)
