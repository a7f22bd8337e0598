"""Defaults of attributes of a model's own functions: as onnxruntime fills them in, at any depth of calls."""

import numpy as np
import onnx
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from onnx import helper

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.function_calls import LARGEST_NODES, check_inlined_size
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import assert_same, lowered, random

DEFAULTS = {"slope": 0.25, "steep": 3.0, "keep": 0.5}
NAMES = sorted(DEFAULTS)
TYPE = helper.make_tensor_value_info("x", 1, [2, 5]).type
# An operator, its attribute, and what the function says of it: None is nothing, a name one of the function's own.
Line = tuple[str, str, float | str | None]


def _attribute(name: str, value: float | str) -> onnx.AttributeProto:
    if isinstance(value, float):
        return helper.make_attribute(name, value)
    return onnx.AttributeProto(name=name, ref_attr_name=value, type=onnx.AttributeProto.FLOAT)


def _chain(lines: list[Line], domain_of_calls: str = "mine") -> list[onnx.NodeProto]:
    nodes = []
    for at, (op_type, name, value) in enumerate(lines):
        domain = domain_of_calls if op_type.startswith("F") else ""
        node = helper.make_node(op_type, [f"v{at}" if at else "x"], [f"v{at + 1}"], domain=domain)
        node.attribute.extend([] if value is None else [_attribute(name, value)])
        nodes.append(node)
    nodes.append(helper.make_node("Identity", [f"v{len(lines)}"], ["y"]))
    return nodes


def _function(name: str, lines: list[Line], defaults: dict[str, float]) -> onnx.FunctionProto:
    return helper.make_function(
        "mine",
        name,
        ["x"],
        ["y"],
        _chain(lines),
        [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)],
        [attribute for attribute in NAMES if attribute not in defaults],
        [helper.make_attribute(attribute, value) for attribute, value in defaults.items()],
    )


def _model(lines: list[Line], functions: list[onnx.FunctionProto]) -> onnx.ModelProto:
    graph = helper.make_graph(
        _chain(lines), "g", [onnx.ValueInfoProto(name="x", type=TYPE)], [onnx.ValueInfoProto(name="y", type=TYPE)]
    )
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=sets, ir_version=9)


def _line(data: st.DataObject, callees: int, own: list[str]) -> Line:
    values = st.sampled_from([None, 0.125, 0.75, *own])
    operators = [("LeakyRelu", "alpha"), ("Elu", "alpha"), ("ThresholdedRelu", "alpha")]
    calls = [(f"F{callee}", name) for callee in range(callees) for name in NAMES]
    op_type, name = data.draw(st.sampled_from([*operators, *calls]))
    return op_type, name, data.draw(values)


@examples(60)
@given(st.data())
def test_as_onnxruntime(data: st.DataObject) -> None:
    functions = []
    for at in range(data.draw(st.integers(1, 3))):
        defaults = {name: DEFAULTS[name] + at for name in data.draw(st.sets(st.sampled_from(NAMES)))}
        lines = [_line(data, at, NAMES) for _ in range(data.draw(st.integers(1, 3)))]
        functions.append(_function(f"F{at}", lines, defaults))
    lines = [_line(data, len(functions), []) for _ in range(data.draw(st.integers(1, 3)))]
    lines.append((f"F{len(functions) - 1}", "slope", None))
    model = _model(lines, functions)
    x = random((2, 5))

    answer = evaluated(model, {"x": x})

    if answer is None:
        event("onnxruntime refuses it")
        return
    assert_same(interpret(lowered(model), {"x": x}), {"y": answer[1][0]}, 1e-5, 1e-6)


def test_default_of_a_required_attribute() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "mine" : 1]>
        g (float[1,4,2,2] x) => (float[1,1,4,4] y) { y = mine.F (x) }
        <domain: "mine", opset_import: ["" : 18]>
        F <size: int = 2> (a) => (b) { b = DepthToSpace <blocksize: int = @size> (a) }"""
    )
    x = random((1, 4, 2, 2))

    expected = x.reshape(2, 2, 2, 2).transpose(2, 0, 3, 1).reshape(1, 1, 4, 4)
    assert np.array_equal(interpret(lowered(model), {"x": x})["y"], expected)


def test_default_within_a_branch() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "mine" : 1]>
        g (float[3] x) => (float[3] y) { y = mine.F (x) }
        <domain: "mine", opset_import: ["" : 18]>
        F <slope: float = 0.5> (a) => (b) {
            c = Constant <value_int = 1> ()
            d = Cast <to = 9> (c)
            b = If (d) <
                then_branch = t () => (e) { e = LeakyRelu <alpha: float = @slope> (a) },
                else_branch = n () => (f) { f = Identity (a) }>
        }"""
    )

    assert interpret(lowered(model), {"x": np.array([-2, 0, 2], np.float32)})["y"].tolist() == [-1, 0, 2]


def test_defaults_count_as_bytes_of_every_call() -> None:
    large = helper.make_function(
        "mine", "F0", ["x"], ["y"], _chain([]), [helper.make_opsetid("", 18)], [], [
            helper.make_attribute("weights", np.zeros(2**20, np.float32).tolist())
        ],
    )  # fmt: skip

    with pytest.raises(UserError, match=r"model: inlining functions gives \d+ bytes against at most"):
        check_inlined_size(_model([("F0", "", None)] * 40, [large]))


def test_calls_of_functions_without_nodes_are_counted() -> None:
    empty = helper.make_function("mine", "F0", [], [], [], [helper.make_opsetid("", 18)])
    functions = [empty]
    for at in range(1, 20):
        calls = [helper.make_node(f"F{at - 1}", [], [], domain="mine")] * 2
        functions.append(helper.make_function("mine", f"F{at}", [], [], calls, [helper.make_opsetid("mine", 1)]))

    with pytest.raises(UserError, match=f"inlining functions gives {2**17} nodes against at most {LARGEST_NODES}"):
        check_inlined_size(_model([], functions))
