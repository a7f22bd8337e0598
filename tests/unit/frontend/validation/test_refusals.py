"""What cannot be lowered is said at once, all of it, and nothing that is not needed."""

import onnx
import pytest

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.operator_claims import Cover, known_operators, operator_claims
from dfcompile.lowering import lower_to_canonical
from tests.onnx_nodes import TABLE

OPTIONS = ReadOptions(operators=frozenset(TABLE.op_types("onnx")))


def refusal(body: str, header: str = "float[4] x") -> str:
    text = f'<ir_version: 8, opset_import: ["": 18, "ai.mine": 1]> g ({header}) => (y) {{ {body} }}'
    with pytest.raises(UnsupportedOpError) as raised:
        program_of("model", onnx.parser.parse_model(text), OPTIONS)
    return str(raised.value)


def test_all_operators_without_expansion_are_named_at_once() -> None:
    found = refusal("[a] t = Bernoulli(x) [b] u = ai.mine.Foo(t) [c] v = ImageDecoder(u) [d] w = Relu6(v) y = Relu(w)")

    assert found == (
        "4 operators have no expansion: "
        "node 'a': no expansion for 'Bernoulli' (its values are drawn when the model runs; replace them by an input); "
        "node 'b': operator ai.mine.Foo against an operator of ONNX itself; "
        "node 'c': no expansion for 'ImageDecoder' (it decodes the bytes of a file); "
        "node 'd': no operator 'Relu6' in ONNX (did you mean 'Relu'?)"
    )


def test_one_operator_is_named_alone() -> None:
    assert refusal("[a] y = Bernoulli(x)").startswith("node 'a': no expansion for 'Bernoulli' (its values are drawn")


def test_what_draws_without_operands_is_named() -> None:
    assert refusal("[a] t = RandomNormal<shape=[4]>() y = Add(x, t)").startswith("node 'a': no expansion for 'RandomN")


def test_many_are_counted() -> None:
    body = " ".join(f"[n{at}] t{at} = Bernoulli({f't{at - 1}' if at else 'x'})" for at in range(30))

    found = refusal(f"{body} y = Relu(t29)")

    assert found.startswith("30 operators have no expansion: node 'n0'")
    assert found.endswith("; and 10 more")


def test_nothing_is_said_of_what_nobody_needs() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (y) { t = Bernoulli(x) y = Relu(x) }"""

    assert [node.op_type for node in program_of("model", onnx.parser.parse_model(text), OPTIONS).nodes][-1] == "Relu"


def test_what_depends_on_data_is_named_at_once() -> None:
    found = refusal(
        "[a] t = NonZero(x) [b] u = Unique(x) v = Cast<to=1>(t) w = ReduceSum(v) z = ReduceSum(u) y = Add(w, z)"
    )

    assert found == (
        "2 operators have no expansion: "
        "node 'a': the shape of 't' depends on data against a static shape (NonZero of values that are no constants); "
        "node 'b': the shape of 'u' depends on data against a static shape (Unique of values that are no constants)"
    )


def test_forms_that_expansions_refuse_are_named_at_once() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[1,2,4] x, float[1,2,4] z) => (y) {
        [a] t = Pad<mode="a">(x, p) [b] u = Pad<mode="b">(z, p) y = Add(t, u)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.helper.make_tensor("p", onnx.TensorProto.INT64, [6], [0] * 6))
    with pytest.raises(UnsupportedOpError) as raised:
        lower_to_canonical(program_of("model", model, OPTIONS), TABLE)

    assert str(raised.value).startswith("2 operators have no expansion: node 'a': Pad(")
    assert "; node 'b': Pad(" in str(raised.value)


def test_every_operator_of_onnx_has_a_claim() -> None:
    claims = operator_claims(frozenset(TABLE.op_types("onnx")))

    assert [claim.op_type for claim in claims] == list(known_operators())
    assert all(bool(claim.reason) is (claim.cover in (Cover.REFUSED, Cover.REPLACED)) for claim in claims)
