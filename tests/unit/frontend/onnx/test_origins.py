"""Origins: how the nodes of a model are named."""

from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dfcompile.frontend import read_model

Scopes = Sequence[str] | None


def names_of(tmp_path: Path, nodes: Sequence[tuple[str, str, Scopes]]) -> list[str]:
    """Chain unary nodes (operator, name, PyTorch's scopes) and return the names that they get."""
    made = []
    for at, (op_type, name, scopes) in enumerate(nodes):
        node = helper.make_node(op_type, [f"v{at}"], [f"v{at + 1}"], name=name)
        if scopes is not None:
            node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=str(list(scopes)))
        made.append(node)
    values = [helper.make_tensor_value_info(f"v{at}", TensorProto.FLOAT, [2]) for at in (0, len(nodes))]
    model = helper.make_model(
        helper.make_graph(made, "g", values[:1], values[1:]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    path = tmp_path / "named.onnx"
    onnx.save(model, str(path))
    return [node.name for node in read_model(path).program.nodes]


def test_module_names_what_it_holds_alone(tmp_path: Path) -> None:
    nodes = [("Relu", "node_relu", ["", "act", "relu"]), ("Exp", "node_exp", ["", "exp"])]

    assert names_of(tmp_path, nodes) == ["act", "exp"]


def test_module_of_several_nodes_is_a_prefix(tmp_path: Path) -> None:
    nodes: list[tuple[str, str, Scopes]] = [
        ("Relu", "", ["", "block", "block.inner", "relu"]),
        ("Exp", "", ["", "block", "exp"]),
        ("Exp", "", ["", "attn", "exp"]),
        ("Relu", "", ["", "attn", "relu"]),
        ("Exp", "", ["", "attn", "exp_1"]),
    ]

    assert names_of(tmp_path, nodes) == ["block.inner", "block.exp", "attn.exp", "attn.relu", "attn.exp_1"]


def test_given_names_lose_slashes(tmp_path: Path) -> None:
    nodes = [("Relu", "/layers.0/act/Relu", None), ("Exp", "my exp", None)]

    assert names_of(tmp_path, nodes) == ["layers.0.act.Relu", "my_exp"]


def test_made_up_and_absent_names_are_counted(tmp_path: Path) -> None:
    nodes = [("Relu", "", None), ("Exp", "node_Exp_579", None), ("Relu", "", None)]

    assert names_of(tmp_path, nodes) == ["Relu_0", "Exp_0", "Relu_1"]


def test_malformed_scopes_fall_back_to_the_name(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="mine")
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', (")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    path = tmp_path / "malformed.onnx"
    onnx.save(helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]), ir_version=10), str(path))

    assert [node.name for node in read_model(path).program.nodes] == ["mine"]


def test_weights_name_the_contraction_that_owns_them(write_model: Callable[[str], Path]) -> None:
    shared = write_model(
        """g (float[2,2] x) => (float[2,2] y)
        <float[2,2] "fc.weight" = {1,2,3,4}, float[2,2] "tied.weight" = {1,2,3,4}> {
          [a] u = MatMul(x, "fc.weight")
          [b] v = MatMul(u, "tied.weight")
          [c] y = MatMul(v, "tied.weight")
        }"""
    )

    assert [node.name for node in read_model(shared).program.nodes] == ["fc", "b", "c"]


@given(st.lists(st.sampled_from(["a", "a_1", "a_2", "b", "a b", "a/b", ""]), min_size=1, max_size=8))
def test_names_are_unique_and_stable(tmp_path_factory: "object", names: list[str]) -> None:
    folder = Path(str(tmp_path_factory.mktemp("names")))  # type: ignore[attr-defined]
    nodes = [("Relu", name, None) for name in names]

    found = names_of(folder, nodes)

    assert len(set(found)) == len(names)
    assert found == names_of(folder, nodes)
    for name, given_name in zip(found, names, strict=True):
        if given_name in {"a_1", "a_2", "b"} and names.count(given_name) == 1:
            assert name == given_name
