"""Contributed operators: what dfcompile has to know of an operator that ONNX does not define."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import onnx
from msgspec import Struct, field
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.defs import OpSchema

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constant

Shape: TypeAlias = tuple[int, ...]
AttributeValue: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]

DOMAIN = "com.microsoft"  # of onnxruntime
_INTEGERS = (TensorProto.INT32, TensorProto.INT64)
_NONE: Mapping[str, "AttributeValue | AttributeKind"] = MappingProxyType({})


class AttributeKind(Struct, frozen=True):
    """What an attribute without default is.

    Attributes:
        type: as schemas have it.
        is_required: whether every node has to give it.
    """

    type: OpSchema.AttrType
    is_required: bool = False


INTEGER = AttributeKind(OpSchema.AttrType.INT)
INTEGERS = AttributeKind(OpSchema.AttrType.INTS)
REAL = AttributeKind(OpSchema.AttrType.FLOAT)
REALS = AttributeKind(OpSchema.AttrType.FLOATS)
TEXT = AttributeKind(OpSchema.AttrType.STRING)
COUNT = AttributeKind(OpSchema.AttrType.INT, is_required=True)


class Call(Struct, frozen=True):
    """A node of a contributed operator, as far as it is known.

    Attributes:
        shapes: static shape of each operand that is there, by the name that the operator has for it; None: not known.
        attributes: given ones, and those that have a default.
        values: of operands that are constant integers.
    """

    shapes: Mapping[str, Shape | None]
    attributes: Mapping[str, AttributeValue]
    values: Mapping[str, tuple[int, ...]]

    def has(self, operand: str) -> bool:
        """Whether an optional operand is there."""
        return operand in self.shapes

    def shape(self, operand: str) -> Shape | None:
        """Return the shape of an operand, None if it is omitted or not known."""
        return self.shapes.get(operand)

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer attribute."""
        found = self.attributes.get(name, default)
        return found if isinstance(found, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers, None if it is absent."""
        found = self.attributes.get(name)
        return tuple(item for item in found if isinstance(item, int)) if isinstance(found, tuple) else None

    def expect(self, operand: str, *expected: Shape) -> None:
        """Check the shape of an operand, if it is known.

        Raises:
            UserError: it is none of the expected ones.
        """
        shape = self.shape(operand)
        if shape is not None and shape not in expected:
            wanted = " or ".join(_text(each) for each in expected)
            raise UserError(f"{operand!r} is {_text(shape)} against {wanted}")

    def expect_rank(self, operand: str, *ranks: int) -> Shape | None:
        """Return the shape of an operand that has one of some numbers of dimensions, None if it is not known.

        Raises:
            UserError: it has another number of dimensions.
        """
        shape = self.shape(operand)
        if shape is not None and len(shape) not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise UserError(f"{operand!r} has {len(shape)} dimensions ({_text(shape)}) against {wanted}")
        return shape


Results: TypeAlias = Callable[[Call], Mapping[str, Shape]]


class ContributedOperator(Struct, frozen=True):
    """An operator of `DOMAIN`.

    Attributes:
        name: without its domain.
        inputs: operands in order, such as ``x:T bias:T?`` for one that must be there and one that need not; the last
            may be ``rest:T*``, which stands for any number of them, ``rest0``, ``rest1`` and so on.
        outputs: results in order, in the same form.
        results: returns the shapes of those results whose shape can be told, by name; it raises a `UserError` where
            operands or attributes do not fit together.
        types: numpy names of the element types that each type variable may stand for; one that no operand binds
            stands for the first.
        attributes: default, or `AttributeKind`, of each by name.
    """

    name: str
    inputs: str
    outputs: str
    results: Results
    types: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, AttributeValue | AttributeKind] = field(default_factory=lambda: _NONE)

    @property
    def op_type(self) -> str:
        """The name under which drafts and expansions know it, such as ``com.microsoft.FastGelu``."""
        return f"{DOMAIN}.{self.name}"

    def call_of(
        self, node: onnx.NodeProto, shapes: Sequence[Shape | None], constants: Sequence[Constant | None]
    ) -> Call:
        """Return a node as the operator sees it.

        Args:
            node: of the operator.
            shapes: of its inputs by position; None: omitted or not known.
            constants: values of its inputs by position; None: omitted or only known when the model runs.
        """
        names = [name.rstrip("?") for name, _ in _placed(formals(self.inputs), len(node.input))]
        there = [(at, name) for at, name in enumerate(names) if at < len(node.input) and node.input[at]]
        known = ((name, constants[at]) for at, name in there)
        values = {name: _integers(value) for name, value in known if value is not None and value.dtype.kind in "iu"}
        given = {entry.name: _value(entry) for entry in node.attribute}
        return self._call({name: shapes[at] for at, name in there}, given, values)

    def _call(
        self,
        shapes: Mapping[str, Shape | None],
        given: Mapping[str, AttributeValue],
        values: Mapping[str, tuple[int, ...]],
    ) -> Call:
        defaults = {name: value for name, value in self.attributes.items() if not isinstance(value, AttributeKind)}
        return Call(shapes, {**defaults, **given}, values)

    def schema(self, schema_types: Callable[[str], str]) -> OpSchema:
        """Return it as ONNX's tools know operators, with inference of shapes.

        Args:
            schema_types: how schemas write an element type, given its numpy name.
        """
        constraints = [(name, list(map(schema_types, allowed)), "") for name, allowed in self.types.items()]
        found = OpSchema(
            self.op_type,
            DOMAIN,
            1,
            inputs=_parameters(self.inputs),
            outputs=_parameters(self.outputs),
            type_constraints=constraints,
            attributes=[_attribute(name, value) for name, value in self.attributes.items()],
        )
        found.set_type_and_shape_inference_function(self._infer)
        return found

    def _infer(self, context: onnx.shape_inference.InferenceContext) -> None:
        """Set the types of the results; where operands do not fit together, validation says so."""
        bound: dict[str, int] = {}
        shapes: dict[str, Shape | None] = {}
        values: dict[str, tuple[int, ...]] = {}
        for at, (name, variable) in enumerate(_placed(formals(self.inputs), context.get_num_inputs())):
            if at >= context.get_num_inputs() or not context.has_input(at):
                continue
            given = context.get_input_type(at)
            bound.setdefault(variable, given.tensor_type.elem_type)
            shapes[name.rstrip("?")] = _known(given)
            value = context.get_input_data(at)
            if value is not None and value.data_type in _INTEGERS:
                values[name.rstrip("?")] = _integers(numpy_helper.to_array(value))
        entries = ((name, context.get_attribute(name)) for name in self.attributes)
        attributes = {name: _value(entry) for name, entry in entries if entry is not None}
        try:
            found = self.results(self._call(shapes, attributes, values))
        except UserError:
            found = {}
        for at, (name, variable) in enumerate(formals(self.outputs)):
            if at < context.get_num_outputs() and context.has_output(at):
                element_type = bound.get(variable) or helper.np_dtype_to_tensor_dtype(self._first(variable))
                shape = found.get(name.rstrip("?"))
                context.set_output_type(at, helper.make_tensor_type_proto(element_type, shape))

    def _first(self, variable: str) -> "np.dtype[np.generic]":
        return np.dtype(self.types[variable][0])


def formals(text: str) -> tuple[tuple[str, str], ...]:
    """Return names and type variables of operands or results; the name of an optional one ends in a question mark.

    >>> formals("x:T bias:T?")
    (('x', 'T'), ('bias?', 'T'))
    """
    pairs = (word.split(":") for word in text.split())
    return tuple((name + variable[len(variable.rstrip("?*")) :], variable.rstrip("?*")) for name, variable in pairs)


def _placed(given: Sequence[tuple[str, str]], count: int) -> Sequence[tuple[str, str]]:
    """Return formals for so many operands: the last one repeated, if it stands for any number of them."""
    if not given or not given[-1][0].endswith("*"):
        return given
    name, variable = given[-1]
    return (*given[:-1], *((f"{name[:-1]}{at}", variable) for at in range(count - len(given) + 1)))


def _parameters(text: str) -> list[OpSchema.FormalParameter]:
    options = OpSchema.FormalParameterOption
    marks = {"?": options.Optional, "*": options.Variadic}
    return [
        OpSchema.FormalParameter(
            name.rstrip("?*"),
            variable,
            param_option=marks.get(name[-1], options.Single),
            is_homogeneous=name[-1] != "*",
        )
        for name, variable in formals(text)
    ]


def _attribute(name: str, value: AttributeValue | AttributeKind) -> OpSchema.Attribute:
    if isinstance(value, AttributeKind):
        return OpSchema.Attribute(name, value.type, required=value.is_required)
    return OpSchema.Attribute(name, helper.make_attribute(name, value))


def _value(entry: AttributeProto) -> AttributeValue:
    if entry.type == AttributeProto.INT:
        return entry.i
    if entry.type == AttributeProto.FLOAT:
        return entry.f
    if entry.type == AttributeProto.INTS:
        return tuple(entry.ints)
    if entry.type == AttributeProto.FLOATS:
        return tuple(entry.floats)
    return entry.s.decode("utf-8", errors="replace")


def _integers(value: Constant) -> tuple[int, ...]:
    return tuple(int(item) for item in np.ravel(value))


def _known(given: onnx.TypeProto) -> Shape | None:
    if not given.tensor_type.HasField("shape"):
        return None
    dims = given.tensor_type.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None


def _text(shape: Shape) -> str:
    return "×".join(map(str, shape)) or "a scalar"
