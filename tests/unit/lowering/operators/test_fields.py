"""Fields of canonical operators: none is misspelt or has a wrong value, and all are written and read again."""

import copy
import json
import pickle
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import OperatorFieldError, RegistrationError
from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, expansion, registered_expansions
from dfcompile.lowering.operators import (
    SHIPPED,
    CanonicalOperator,
    Concat,
    Copy,
    Elementwise,
    Gather,
    Im2col,
    Lookup,
    MatMul,
    Pad,
    Reduce,
    Window,
)
from dfcompile.lowering.operators.base import schema_of
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.lowering.operators.drawn_operators import operators

EVERY = list(SHIPPED.values())


@pytest.mark.parametrize("operator", EVERY, ids=lambda each: each.__name__)
@given(data=st.data())
@examples(50)
def test_what_is_written_is_read_again(operator: type[CanonicalOperator], data: st.DataObject) -> None:
    drawn = data.draw(operators(operator))
    saved = json.dumps(drawn.attributes(), sort_keys=True)
    read = operator.of_attributes(json.loads(saved))

    assert read == drawn
    assert repr(read) == repr(drawn)  # 1 is equal to True and to 1.0
    assert json.dumps(read.attributes(), sort_keys=True) == saved


@pytest.mark.parametrize("operator", EVERY, ids=lambda each: each.__name__)
@given(data=st.data())
@examples(10)
def test_an_attribute_too_many_or_too_few_is_named(operator: type[CanonicalOperator], data: st.DataObject) -> None:
    attributes = data.draw(operators(operator)).attributes()
    with pytest.raises(OperatorFieldError, match=rf"^{operator.__name__} has no field 'surplus'"):
        operator.of_attributes({**attributes, "surplus": 1})
    for _, name in schema_of(operator).required:
        left = {other: value for other, value in attributes.items() if other != name}
        with pytest.raises(OperatorFieldError, match=rf"^{operator.__name__} has no value for field '\w+'$"):
            operator.of_attributes(left)


def test_every_operator_that_is_shipped_has_an_expansion_and_the_other_way_round() -> None:
    assert registered_expansions().operators == SHIPPED


@pytest.mark.parametrize("operator", EVERY, ids=lambda each: each.__name__)
def test_every_field_is_documented(operator: type[CanonicalOperator]) -> None:
    documented = operator.__doc__ or ""

    assert all(f"        {name}: " in documented for name in schema_of(operator).kinds)


def test_a_copy_is_equal() -> None:
    window = Window(Reduction.MAX, (2, 2), (1, 1), (1, 1))

    assert copy.copy(window) == copy.deepcopy(window) == pickle.loads(pickle.dumps(window)) == window
    assert replace(window, expression="a * a").attributes()["expression"] == "a * a"


# What a type check would find, found when an operator is made.
WRONG: list[tuple[type[Any], dict[str, object], str]] = [
    (Elementwise, {"expresion": "-a"}, r"Elementwise has no field 'expresion' \(did you mean 'expression'\?\)"),
    (Reduce, {"reduction": Reduction.SUM, "axes": (0,), "keepdim": True}, "no field 'keepdim' .*'keepdims'"),
    (Window, {"reduction": Reduction.MAX, "kernel": (2,)}, "Window has no value for field 'strides'"),
    (Reduce, {"reduction": "SUM", "axes": (0,)}, "'reduction' is 'SUM' against Reduction.SUM or "),
    (Reduce, {"reduction": Reduction.SUM, "axes": [0]}, r"'axes' is \[0\] against a tuple, each item an integer of at"),
    (Reduce, {"reduction": Reduction.SUM, "axes": (-1,)}, r"'axes' is \(-1,\) against .* an integer of at least 0"),
    (Reduce, {"reduction": Reduction.SUM, "axes": (0,), "keepdims": 1}, "'keepdims' is 1 against True or False"),
    (Lookup, {"axis": True}, "Lookup: field 'axis' is True against an integer of at least 0"),
    (Concat, {"axis": 1.0}, "Concat: field 'axis' is 1.0 against an integer"),
    (MatMul, {"transpose_a": None}, "'transpose_a' is None against True or False"),
    (Im2col, {"kernel": (3,), "strides": (0,), "dilations": (1,), "counts": (1,)}, r"'strides' is \(0,\) against"),
    (Pad, {"pads": (0, 0), "mode": "reflection"}, "'mode' is 'reflection' against 'constant' or 'edge' or "),
    (Pad, {"pads": (0, 0), "value": True}, "'value' is True against a number"),
    (Copy, {"read": ("i0", 1)}, r"'read' is \('i0', 1\) against None or a tuple, each item a text"),
    (Gather, {"axis": 0, "runs": ((0, 1),)}, r"'runs' is \(\(0, 1\),\) against a tuple, each item \(an integer, an"),
    (Elementwise, {"expression": "a", "axes": ((0,), 1)}, "'axes' is .* against None or a tuple, each item a tuple"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "given", "message"), WRONG)
def test_wrong_fields_are_refused(operator: type[Any], given: dict[str, object], message: str) -> None:
    with pytest.raises(OperatorFieldError, match=message):
        operator(**given)


def test_more_values_than_fields_are_refused() -> None:
    make: type[Any] = MatMul
    with pytest.raises(OperatorFieldError, match="MatMul has 2 fields against 3 values"):
        make(False, False, (1, 2, 3, 4))


class Side(Enum):
    """A kind of value of the operators below."""

    LEFT = 0
    RIGHT = 1


def test_an_operator_with_a_field_that_cannot_be_saved_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Shuffle(CanonicalOperator):
        """Of a plug-in."""

        order: dict[str, int]

    with pytest.raises(RegistrationError, match=r"Shuffle: field 'order': type dict\[str, int\]: found against"):
        expansion(Shuffle, "map", source="onnx")


def test_an_operator_that_is_no_dataclass_is_refused() -> None:
    class Shuffle(CanonicalOperator):
        """Of a plug-in."""

        order: tuple[int, ...]

    with pytest.raises(RegistrationError, match=r"Shuffle: a plain class against @dataclass\(frozen=True, "):
        expansion(Shuffle, "map", source="onnx")


def test_an_expansion_is_of_a_class() -> None:
    make: Any = expansion
    with pytest.raises(RegistrationError, match="expansion 'rows': operator 'MatMul' against a class of"):
        make("MatMul", "rows", source="onnx")


def test_an_expansion_becomes_a_value_with_its_operator() -> None:
    @dataclass(frozen=True, slots=True)
    class Shuffle(CanonicalOperator):
        """Of a plug-in."""

        side: Side
        steps: tuple[tuple[int, float], ...] = ()

    @expansion(Shuffle, "map", source="onnx")
    def shuffle(op: CanonicalNode[Shuffle], build: MapFragment) -> None:
        """Do nothing."""

    made = Shuffle(Side.RIGHT, ((1, 0.5), (2, 1)))

    assert (shuffle.op_type, shuffle.operator) == ("Shuffle", Shuffle)
    assert made.attributes() == {"side": "RIGHT", "steps": [[1, 0.5], [2, 1]]}
    assert Shuffle.of_attributes(made.attributes()) == made
