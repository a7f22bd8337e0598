"""Contributed operators: what dfcompile has to know of an operator that ONNX does not define."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from textwrap import dedent
from typing import TypeAlias

import numpy as np
import onnx
from msgspec import Struct
from onnx import TensorProto, helper, numpy_helper
from onnx.defs import OpSchema

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import AttributeValue, Constant, Constants, attribute_value
from dfcompile.frontend.onnx.known_shapes import KnownShapes, Shape, UnknownShapeError, require
from dfcompile.frontend.onnx.shapes import TensorType, shape_of

DOMAIN = "com.microsoft"  # of onnxruntime
_INTEGERS = (TensorProto.INT32, TensorProto.INT64)
_KINDS = {"int": OpSchema.AttrType.INT, "ints": OpSchema.AttrType.INTS, "float": OpSchema.AttrType.FLOAT}


class Call(KnownShapes[str], frozen=True):
    """A node of a contributed operator, as far as it is known; operands by the names that the operator has for them.

    Attributes:
        values: of operands that are constant integers.
    """

    values: Mapping[str, tuple[int, ...]]

    def all_known(self, **ranks: tuple[int, ...]) -> tuple[Shape, ...]:
        """Return the shapes of operands, each of which has one of some numbers of dimensions.

        Raises:
            UnknownShapeError: one is omitted or not known.
            UserError: one has another number of dimensions.
        """
        for operand, allowed in ranks.items():
            self.expect_rank(operand, *allowed)
        return tuple(self.known(operand) for operand in ranks)

    def expect_all(self, shape: Shape, *operands: str) -> None:
        """Check that operands whose shapes are known have one shape.

        Raises:
            UserError: one has another shape.
        """
        for operand in operands:
            self.expect(operand, shape)


_Formal: TypeAlias = tuple[str, str, str]  # name, type variable and mark
Results: TypeAlias = Callable[[Call], Mapping[str, Shape]]


class ContributedOperator(Struct, frozen=True):
    """An operator of `DOMAIN`.

    Attributes:
        name: without its domain.
        signature: operands and results in order, such as ``x:T bias:T? -> y:T``, where ``bias`` need not be there; the
            last operand may be ``rest:T*``, which stands for any number of them, ``rest0``, ``rest1`` and so on.
        results: returns the shapes of those results whose shape can be told, by name; it raises a `UserError` where
            operands or attributes do not fit together, and an `UnknownShapeError` where none can be told.
        types: numpy names of the element types that each type variable may stand for; one that no operand binds
            stands for the first.
        attributes: each with its default, such as ``alpha=1.0 mode="NONE"``, or without one, ``scale:float``; every
            node has to give ``heads:int!``.
    """

    name: str
    signature: str
    results: Results
    types: Mapping[str, tuple[str, ...]]
    attributes: str = ""

    @property
    def op_type(self) -> str:
        """The name under which drafts and expansions know it, such as ``com.microsoft.FastGelu``."""
        return f"{DOMAIN}.{self.name}"

    @property
    def _inputs(self) -> list[_Formal]:
        return formals(self.signature.partition("->")[0])

    @property
    def _outputs(self) -> list[_Formal]:
        return formals(self.signature.partition("->")[2])

    def call_of(self, node: KnownShapes[int], constants: Sequence[Constant | None]) -> Call:
        """Return a node as the operator sees it.

        Args:
            node: of the operator, with operands by position.
            constants: values of all its inputs by position; None: omitted or only known when the model runs.
        """
        names = [name for name, _, _ in _placed(self._inputs, len(constants))]
        known = {name: value for name, value in zip(names, constants, strict=False) if value is not None}
        return self._call({names[at]: shape for at, shape in node.shapes.items()}, node.attributes, known)

    def _call(
        self, shapes: Mapping[str, Shape | None], given: Mapping[str, AttributeValue], constants: Constants
    ) -> Call:
        defaults = {name: json.loads(text) for name, text, *_ in attributes(self.attributes) if text}
        integers = {name: value for name, value in constants.items() if value.dtype.kind in "iu"}
        values = {name: tuple(int(item) for item in np.ravel(value)) for name, value in integers.items()}
        return Call(shapes, {**defaults, **given}, values)

    def schema(self, schema_types: Callable[[str], str]) -> OpSchema:
        """Return it as ONNX's tools know operators, with inference of shapes.

        Args:
            schema_types: how schemas write an element type, given its numpy name.
        """
        schema = OpSchema(
            self.op_type,
            DOMAIN,
            1,
            inputs=_parameters(self._inputs),
            outputs=_parameters(self._outputs),
            type_constraints=[(name, list(map(schema_types, allowed)), "") for name, allowed in self.types.items()],
            attributes=[_attribute(*each) for each in attributes(self.attributes)],
        )
        schema.set_type_and_shape_inference_function(self._infer)
        return schema

    def _infer(self, context: onnx.shape_inference.InferenceContext) -> None:
        """Set the types of the results; where operands do not fit together, validation says so."""
        bound: dict[str, int] = {}
        shapes: dict[str, Shape | None] = {}
        constants: dict[str, Constant] = {}
        count = context.get_num_inputs()
        for at, (name, variable, _) in enumerate(_placed(self._inputs, count)[:count]):
            if not context.has_input(at):
                continue
            given, value = context.get_input_type(at), context.get_input_data(at)
            bound.setdefault(variable, given.tensor_type.elem_type)
            shapes[name] = TensorType("", shape_of(given)).known_shape
            if value is not None and value.data_type in _INTEGERS:
                constants[name] = numpy_helper.to_array(value)
        entries = ((name, context.get_attribute(name)) for name, *_ in attributes(self.attributes))
        given_attributes = {name: attribute_value(entry) for name, entry in entries if entry is not None}
        try:
            results = self.results(self._call(shapes, given_attributes, constants))
        except (UserError, UnknownShapeError):
            results = {}
        for at, (name, variable, _) in enumerate(self._outputs):
            if at < context.get_num_outputs() and context.has_output(at):
                element_type = bound.get(variable) or helper.np_dtype_to_tensor_dtype(np.dtype(self.types[variable][0]))
                context.set_output_type(at, helper.make_tensor_type_proto(element_type, results.get(name)))


def operators(
    table: str, results: Mapping[str, Results], types: Mapping[str, tuple[str, ...]]
) -> tuple[ContributedOperator, ...]:
    """Return the operators of a table: one a line, which goes on in lines that are indented.

    Args:
        table: lines ``NAME SIGNATURE | ATTRIBUTES | T=float32,float16``; what is behind a bar may be left out.
        results: by name.
        types: of the type variables of which a line does not say any.
    """
    found = []
    for line in re.split(r"\n(?=\S)", dedent(table).strip()):
        head, given, said = [*line.split("|"), "", ""][:3]
        name, _, signature = head.partition(" ")
        own = {variable: tuple(names.split(",")) for variable, names in re.findall(r"(\w+)=(\S+)", said)}
        allowed = {variable: {**types, **own}[variable] for _, variable, _ in formals(signature)}
        found.append(ContributedOperator(name, signature, results[name], allowed, given))
    return tuple(found)


def like(operand: str, result: str, bias: str = "") -> Results:
    """Return what gives the shape of a result that is as large as an operand, to whose last dimension a bias is added.

    Args:
        operand: its name.
        result: its name.
        bias: its name, empty if there is none.
    """

    def results(call: Call) -> Mapping[str, Shape]:
        shape = call.known(operand)
        if call.has(bias):
            require(shape, f"{operand!r} is a scalar against at least 1 dimension, of the bias")
            call.expect(bias, shape[-1:])
        return {result: shape}

    return results


def expect_both(call: Call, first: str, second: str) -> None:
    """Check that two optional operands are both there, or none.

    Raises:
        UserError: one of them is omitted.
    """
    require(call.has(first) == call.has(second), f"one of {first!r} and {second!r} is omitted against both or none")


def formals(text: str) -> list[_Formal]:
    """Return name, type variable and mark of operands or results: ``?`` of an optional one, ``*`` of any number.

    >>> formals("x:T bias:T?")
    [('x', 'T', ''), ('bias', 'T', '?')]
    """
    return re.findall(r"(\w+):(\w+)([?*]?)", text)


def _placed(operands: Sequence[_Formal], count: int) -> list[_Formal]:
    """Return formals for so many operands: the last one repeated, if it stands for any number of them."""
    *first, last = operands
    name, variable, mark = last
    return [*first, *([(f"{name}{at}", variable, "") for at in range(count - len(first))] if mark == "*" else [last])]


def _parameters(given: Sequence[_Formal]) -> list[OpSchema.FormalParameter]:
    options = OpSchema.FormalParameterOption
    by_mark = {"": options.Single, "?": options.Optional, "*": options.Variadic}
    return [
        OpSchema.FormalParameter(name, variable, param_option=by_mark[mark], is_homogeneous=mark != "*")
        for name, variable, mark in given
    ]


@cache
def attributes(text: str) -> tuple[tuple[str, str, str, str], ...]:
    """Return name, default, kind and mark of attributes: ``!`` of one that every node has to give.

    >>> attributes("alpha=1.0 heads:int!")
    (('alpha', '1.0', '', ''), ('heads', '', 'int', '!'))
    """
    return tuple(re.findall(r"(\w+)(?:=(\S+)|:(\w+)(!?))", text))


def _attribute(name: str, default: str, kind: str, mark: str) -> OpSchema.Attribute:
    if default:
        return OpSchema.Attribute(name, helper.make_attribute(name, json.loads(default)))
    return OpSchema.Attribute(name, _KINDS[kind], required=mark == "!")
