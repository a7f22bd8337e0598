"""Who is named where a field of a canonical operator is wrong: the expansion that set it, or the node that has it."""

import json
from dataclasses import dataclass
from typing import Any

import dace
import numpy as np
import pytest

from dfcompile.errors import OperatorFieldError, PluginError, RegistrationError, UserError
from dfcompile.frontend import Level, OperatorNode, Program
from dfcompile.lowering import (
    CanonicalFragment,
    CanonicalNode,
    CanonicalOperator,
    ExpansionTable,
    MapFragment,
    Operator,
    Reduction,
    apply_passes,
    expansion,
    lower_to_canonical,
    lower_to_maps,
    lowering_pass,
    onnx_expansion,
    registered_expansions,
)
from dfcompile.lowering.operators import (
    Col2im,
    Concat,
    Copy,
    Elementwise,
    Gather,
    Im2col,
    MatMul,
    Pad,
    Reduce,
    Scatter,
    Update,
    Window,
)
from dfcompile.lowering.passes.fuse_elementwise import fuse_elementwise
from dfcompile.plugins import Plugin
from dfcompile.records import replace
from dfcompile.testing.expansions import canonical_program
from tests.interpreter import interpret
from tests.onnx_text import program_from_text

RELU = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
TABLE = registered_expansions()
untyped: Any = Elementwise  # as in a plug-in that is not type-checked


@onnx_expansion("Relu", "misspelt")
def misspelt(op: Operator, build: CanonicalFragment) -> None:
    """Set a field that there is not."""
    build.add(untyped(expresion="max(0, a)"), [op.input(0)], op.output())


@onnx_expansion("Relu", "contradicting")
def contradicting(op: Operator, build: CanonicalFragment) -> None:
    """Read an operand that there is not."""
    build.add(Elementwise("max(0, b)"), [op.input(0)], op.output())


@onnx_expansion("Relu", "shrinking")
def shrinking(op: Operator, build: CanonicalFragment) -> None:
    """View fewer elements than there are."""
    build.view_as(build.view(op.input(0), "row", (3,)), op.output())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (misspelt, "Elementwise has no field 'expresion' (did you mean 'expression'?)"),
        (contradicting, "node {node!r}: Elementwise: field 'expression' is 'max(0, b)' with 'b' against operands a"),
        (shrinking, "view '{node}_row': [3] against the elements of float32[2,3]"),
    ],
)
def test_an_expansion_that_sets_a_wrong_field_is_named(wrong: Any, message: str) -> None:
    program = program_from_text(RELU)
    found = replace(wrong, module="mylab.x")
    message = message.format(node=program.nodes[0].name)
    with pytest.raises(PluginError) as raised:
        lower_to_canonical(program, ExpansionTable.of([Plugin(found, "mylab.x")]))
    with pytest.raises(OperatorFieldError) as bug:
        lower_to_canonical(program, ExpansionTable.of([Plugin(replace(wrong, module="dfcompile.x"), "dfcompile.x")]))

    assert str(raised.value) == f"in expansion mylab.x.{found.name}: {message}"
    assert str(bug.value) == message


def changed(program: Program, **attributes: object) -> Program:
    """Return a program as it is saved and read, with other attributes of its operators; None takes one away."""
    sdfg = dace.SDFG.from_json(json.loads(json.dumps(program.sdfg.to_json())))
    for node in sdfg.start_state.nodes():
        if isinstance(node, OperatorNode):
            left = {**node.attributes, **attributes}
            node.attributes_json = json.dumps({name: value for name, value in left.items() if value is not None})
    return replace(program, sdfg=sdfg)


def total() -> Program:
    return canonical_program(Reduce(Reduction.SUM, axes=(1,), expression="a * a"), [(2, 3)], (2, 1))


def test_a_program_that_is_saved_and_read_computes_the_same() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = interpret(lower_to_maps(changed(total()), TABLE), {"x0": x})["y"]

    np.testing.assert_array_equal(found.astype(np.float32), (x * x).sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"expresion": "a"}, r"Reduce has no field 'expresion' \(did you mean 'expression'\?\)"),
        ({"axes": None}, "Reduce has no value for field 'axes'"),
        ({"axes": [True]}, r"Reduce: field 'axes' is \(True,\) against a tuple, each item an integer of at least 0"),
        ({"axes": 1}, "Reduce: field 'axes' is 1 against a tuple"),
        ({"axes": [2]}, r"Reduce: field 'axes' is \(2,\) against different axes of rank 2"),
        ({"reduction": "MEAN"}, "Reduce: field 'reduction' is 'MEAN' against Reduction.SUM or"),
        ({"keepdims": False}, r"Reduce: field 'keepdims' is False with a result float32\[2,1\] against shape \[2\]"),
    ],
)
def test_a_program_with_other_attributes_is_refused(attributes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=rf"^node 'op': {message}"):
        lower_to_maps(changed(total(), **attributes), TABLE)


@pytest.mark.parametrize("text", ["[]", "{", "null"])
def test_attributes_that_are_no_object_of_json_are_refused(text: str) -> None:
    program = total()
    for node in program.sdfg.start_state.nodes():
        if isinstance(node, OperatorNode):
            node.attributes_json = text
    with pytest.raises(UserError, match=r"^node 'op': attributes .* against "):
        lower_to_maps(program, TABLE)


@lowering_pass("misspell", level=Level.CANONICAL, source="own")
def misspell(program: Program) -> Program:
    """Misspell an attribute, in the SDFG itself."""
    return changed(program, expresion="a")


def test_a_pass_that_leaves_an_attribute_that_there_is_not_is_named() -> None:
    program = lower_to_canonical(program_from_text(RELU), TABLE)
    fault = f"node {program.nodes[0].name!r}: Elementwise has no field 'expresion' (did you mean 'expression'?)"
    with pytest.raises(PluginError) as raised:
        apply_passes(program, [replace(misspell, module="mylab.x")])

    assert str(raised.value) == f"in pass mylab.x.misspell: {fault}"


def test_a_pass_that_reads_an_attribute_that_there_is_not_says_where() -> None:
    pair = lower_to_canonical(program_from_text(RELU.replace("y = Relu(x)", "t = Exp(x) y = Relu(t)")), TABLE)
    with pytest.raises(
        UserError, match=r"^in pass 'fuse-elementwise': node '\w+': Elementwise has no field 'expresion'"
    ):
        apply_passes(changed(pair, expresion="a"), [fuse_elementwise])


# An operator, shapes of its operands and its result, and what contradicts them.
CONTRADICTIONS: list[tuple[CanonicalOperator, list[tuple[int, ...]], tuple[int, ...], str]] = [
    (MatMul(), [(2, 3), (4, 5)], (2, 5), r"MatMul: \[2,3\] @ \[4,5\] -> \[2,5\] against"),
    (MatMul(), [(2, 3)], (2, 3), "MatMul: 1 operands against 2"),
    (MatMul(), [(3,), (3, 5)], (5,), "MatMul: .* against matrices"),
    (Elementwise("a +"), [(2,)], (2,), "'a \\+' against an expression of Python"),
    (Elementwise("a + b"), [(2,), (3,)], (2,), r"operand 1, float32\[3\], at axes \[0\] of the result"),
    (Elementwise("a + b", ((0, 1), (2,))), [(2, 3), (3,)], (2, 3), "'axes' has axis 2 against rank 2"),
    (Elementwise("a + b", ((0, 1),)), [(2, 3), (3,)], (2, 3), "'axes' is .* against 2 items"),
    (Elementwise("a", None, ((0, 2),)), [(2, 4)], (2, 3), r"operand 0, float32\[2,4\], read from \[0, 2\] on for"),
    (Elementwise("a", None, ((0,),)), [(2, 4)], (2, 3), r"operand 0, float32\[2,4\], read from \[0\] on for"),
    (Elementwise("a + b", None, ((0, 1),)), [(2, 4), (3,)], (2, 3), "'starts' is .* against 2 items"),
    (Reduce(Reduction.SUM, (0,)), [(2,), (3,)], (1,), "against shapes that broadcast"),
    (Window(Reduction.SUM, (3,), (2,), (1,)), [(1, 1, 6)], (1, 1, 3), "3 windows span 7 elements against 6 of axis 2"),
    (Window(Reduction.SUM, (3, 3), (2,), (1,)), [(1, 1, 6)], (1, 1, 2), "'kernel' is .* against 1 items"),
    (Im2col((2,), (1,), (1,), (3,)), [(1, 2, 4)], (4, 4), "against 12 elements"),
    (Im2col((2,), (1,), (1,), (3,), 3), [(1, 2, 4)], (3, 2, 3), "'group' is 3 against a divisor"),
    (Copy(read=("i1",)), [(6,)], (6,), "'read' has index 'i1' with 'i1' against 1 loops"),
    (Copy(read=("i0", "i0")), [(6,)], (6,), "'read' is .* against one index per dimension"),
    (Concat(1), [(2, 3), (2, 4)], (2, 8), "along axis 1 against"),
    (Gather(0, ((2, 1, 3),)), [(4,)], (3,), r"'runs' has \(2, 1, 3\) against indices below 4"),
    (Gather(0, ((0, 1, 3),)), [(4,)], (2,), "'runs' has 3 indices along axis 0"),
    (Scatter(0, ((2, 1, 3),)), [(4,), (3,)], (4,), r"'runs' has \(2, 1, 3\) against different indices below 4"),
    (Scatter(0, ((2, 0, 2),)), [(4,), (2,)], (4,), r"'runs' has \(2, 0, 2\) against different indices below 4"),
    (Scatter(0, ((0, 1, 3),)), [(4,), (2,)], (4,), "'runs' has 3 indices along axis 0"),
    (Update(0, (0, 1)), [(4,), (2,), (2,)], (4,), "'index_axes' is .* against one axis per dimension"),
    (Update(0, (0,)), [(4,), (3,), (2,)], (4,), r"indices float32\[3\] at axes \[0\] of the updates"),
    (Update(0, (0,)), [(4, 2), (3,), (3, 3)], (4, 2), r"updates float32\[3,3\] of float32\[4,2\]"),
    (Update(0, (0,)), [(4,), (2,), (2,)], (5,), r"the result float32\[5\] against float32\[4\]"),
    (Col2im((1,), (1,)), [(1, 1, 2, 4)], (1, 1, 4), "windows span 5 elements against 4 of axis 2"),
    (Col2im((1,), (1,)), [(1, 2, 2, 4)], (1, 1, 5), "of 1 spatial dimensions against the result"),
    (Pad((1, 1)), [(4,)], (5,), r"'pads' is \(1, 1\) for float32\[4\] against the result float32\[5\]"),
    (Pad((1, 1, 0, 0)), [(4,)], (6,), "'pads' is .* against 2 items"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "output", "message"), CONTRADICTIONS)
def test_fields_that_contradict_the_arrays_are_refused(
    operator: CanonicalOperator, inputs: list[tuple[int, ...]], output: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UserError, match=message) as raised:
        lower_to_maps(canonical_program(operator, inputs, output), TABLE)

    assert str(raised.value).startswith(f"node 'op': {type(operator).__name__}: ")


@dataclass(frozen=True, slots=True)
class MatMulOfAnother(CanonicalOperator):
    """A canonical operator of another package."""


MatMulOfAnother.__name__ = "MatMul"


@expansion(MatMulOfAnother, "other", source="onnx")
def other(op: CanonicalNode[MatMulOfAnother], build: MapFragment) -> None:
    """Build nothing."""


def test_two_canonical_operators_of_one_name_are_both_named() -> None:
    with pytest.raises(
        RegistrationError, match=f"canonical operator MatMul: claimed by 'dfcompile.*' and by '{__name__}'"
    ):
        ExpansionTable.of([*TABLE.plugins, Plugin(other, __name__)])
