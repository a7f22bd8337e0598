"""Small files that ask for much: they are refused, or read within stated bounds of time and memory."""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

from dfcompile.errors import MOST_ERRORS, UnsupportedOpError, UserError, nearest
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.frontend.normaliser import constant_folding
from dfcompile.frontend.normaliser.constant_folding import fold_constants, may_fold, room_for_folds
from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.onnx.function_calls import DEEPEST_CALLS, LARGEST_NODES, check_inlined_size
from dfcompile.frontend.validation import structure

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]


def function(name: str, called: Sequence[str], attributes: Sequence[AttributeProto] = ()) -> onnx.FunctionProto:
    nodes = []
    for number, callee in enumerate(called):
        names = ["p" if number == 0 else f"t{number}"], ["q" if number == len(called) - 1 else f"t{number + 1}"]
        nodes.append(helper.make_node(callee, *names, domain="my" if callee.startswith("F") else ""))
        nodes[-1].attribute.extend(attributes)
    return helper.make_function("my", name, ["p"], ["q"], nodes, OPSETS)


def value(name: str, shape: Sequence[int] = (2,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(functions: Sequence[onnx.FunctionProto], first: str = "F0") -> onnx.ModelProto:
    graph = helper.make_graph([helper.make_node(first, ["x"], ["y"], domain="my")], "g", [value("x")], [value("y")])
    return helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=10)


def read(proto: onnx.ModelProto, folder: Path) -> None:
    onnx.save(proto, folder / "model.onnx")
    read_model(folder / "model.onnx", ReadOptions())


def test_functions_that_double_are_refused_at_once(tmp_path: Path) -> None:
    bomb = model([*(function(f"F{n}", [f"F{n + 1}"] * 2) for n in range(25)), function("F25", ["Neg"] * 2)])
    begin = time.process_time()

    # F25 is 2 nodes, F10 2**16, F9 2**17.
    with pytest.raises(UserError, match="function 'F9': inlining functions gives 131072 nodes against at most 100000"):
        read(bomb, tmp_path)
    assert time.process_time() - begin < 2.0


@pytest.mark.parametrize("calls", [LARGEST_NODES // 1000, LARGEST_NODES // 1000 + 1])
def test_count_of_inlined_nodes_is_exact(calls: int) -> None:
    proto = model([function("F1", ["Neg"] * 1000), function("F0", ["F1"] * calls)])

    if calls * 1000 <= LARGEST_NODES:
        check_inlined_size(proto)
    else:
        with pytest.raises(UserError, match=f"function 'F0': inlining functions gives {calls * 1000} nodes"):
            check_inlined_size(proto)


def test_calls_of_the_graph_itself_are_counted() -> None:
    proto = model([function("F0", ["Neg"] * 1000)])
    proto.graph.node.extend([proto.graph.node[0]] * 100)

    with pytest.raises(UserError, match="model: inlining functions gives 101000 nodes against at most 100000"):
        check_inlined_size(proto)


def test_functions_that_call_each_other_are_refused_also_inside_of_graphs(tmp_path: Path) -> None:
    circle = model([function("F0", ["F1"]), function("F1", ["Neg", "F0"])])
    with pytest.raises(UserError, match=r"function 'F0': calls itself \('F0' -> 'F1' -> 'F0'\)"):
        read(circle, tmp_path)

    branch = helper.make_graph([helper.make_node("F0", ["p"], ["r"], domain="my")], "b", [], [value("r")])
    hidden = model([function("F0", ["Neg"], [helper.make_attribute("body", branch)])])
    with pytest.raises(UserError, match="function 'F0': calls itself"):
        check_inlined_size(hidden)


def test_deep_chain_of_functions_is_refused_and_needs_no_stack() -> None:
    chain = model([*(function(f"F{n}", [f"F{n + 1}"]) for n in range(20_000)), function("F20000", ["Neg"])])

    with pytest.raises(UserError, match=f"functions are called {DEEPEST_CALLS + 1} deep against at most"):
        check_inlined_size(chain)


def test_large_attributes_that_are_inlined_often_are_refused() -> None:
    text = helper.make_attribute("text", "x" * 2**20)
    proto = model([function("F1", ["Neg"], [text]), function("F0", ["F1"] * 1000)])

    with pytest.raises(UserError, match=r"function 'F0': inlining functions gives \d+ bytes against at most"):
        check_inlined_size(proto)


def external(folder: Path, location: str, data: bytes, **keys: int) -> onnx.ModelProto:
    """Return ``y = x + w`` with ``w`` of two floats elsewhere."""
    if data:
        (folder / location).write_bytes(data)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **keys}.items():
        tensor.external_data.add(key=key, value=str(text))
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], [tensor])
    return helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10)


def test_external_data_beside_the_model_is_read(tmp_path: Path) -> None:
    data = np.array([7, 1, 2, 9], np.float32).tobytes()
    onnx.save(external(tmp_path, "w.bin", data, offset=4, length=8), tmp_path / "model.onnx")
    read_model(tmp_path / "model.onnx", ReadOptions())
    found = read_model(tmp_path / "model.onnx", ReadOptions())

    assert found.program.parameters["w"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("location", "keys", "expected"),
    [
        ("missing.bin", {}, "external data in 'missing.bin': no such file or directory"),
        ("w.bin", {"offset": 12}, "external data up to byte 20 against the 16 of 'w.bin'"),
        ("w.bin", {"length": 16}, "16 bytes of external data against the 8 of its type and dimensions"),
        ("w.bin", {"offset": -4}, "offset '-4' of its external data against a whole number"),
        ("w.bin", {"offset": 10**30}, "against a whole number"),
        ("", {}, "external data in '' against a file inside of the model's folder"),
        ("../w.bin", {}, "against a file inside of the model's folder"),
        ("a/../../w.bin", {}, "against a file inside of the model's folder"),
        ("/dev/zero", {}, "against a file inside of the model's folder"),
        ("zero", {}, "a link to a file elsewhere, against one inside of the model's folder"),
        ("up/w.bin", {}, "a link to a file elsewhere, against one inside of the model's folder"),
        ("circle", {}, "external data in 'circle': "),
        ("folder", {}, "external data in 'folder' against a regular file"),
        ("pipe", {}, "external data in 'pipe' against a regular file"),
        ("a" * 300, {}, "file name too long"),
        ("\x1b[31m", {}, r"external data in '\x1b[31m': no such file"),
    ],
)
def test_external_data_elsewhere_is_refused(location: str, keys: dict[str, int], expected: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    for place in (folder, tmp_path):
        (place / "w.bin").write_bytes(bytes(16))
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "up").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "pipe")

    with pytest.raises(UserError) as refused:
        read(external(folder, location, b"", **keys), folder)
    assert expected in str(refused.value)
    assert "tensor 'w': " in str(refused.value)


def test_many_tensors_of_one_file_are_refused(tmp_path: Path) -> None:
    """A file of 8 MB, read a thousand times, would be 8 GB."""
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(2**23)
    proto = external(tmp_path, "w.bin", b"")
    proto.graph.initializer[0].dims[:] = [2**21]
    for number in range(1000):
        proto.graph.initializer.add().CopyFrom(proto.graph.initializer[0])
        proto.graph.initializer[-1].name = f"w{number}"

    with pytest.raises(UserError, match=r"tensors of \d+ bytes in all against the 8388608 bytes of their files"):
        read(proto, tmp_path)


@pytest.mark.parametrize("dims", [[10**12], [2**62, 2**62], [2**63 - 1] * 8])
def test_dimensions_beyond_the_data_are_refused(dims: list[int], tmp_path: Path) -> None:
    for kind in (TensorProto.FLOAT, TensorProto.INT8, TensorProto.FLOAT16, TensorProto.BOOL):
        proto = external(tmp_path, "w.bin", b"")
        tensor = TensorProto(name="w", data_type=kind, dims=dims, raw_data=b"12345678")
        proto.graph.initializer[0].CopyFrom(tensor)
        with pytest.raises(UserError, match="initializer 'w': "):
            read(proto, tmp_path)


def draft(nodes: Sequence[onnx.NodeProto], **constants: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Draft:
    graph = helper.make_graph(nodes, "g", [], [onnx.ValueInfoProto(name="y")])
    return Draft(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10), constants)


def doubling(count: int) -> list[onnx.NodeProto]:
    return [helper.make_node("Concat", [f"t{n}", f"t{n}"], [f"t{n + 1}"], axis=0) for n in range(count)]


FOLDS: dict[str, Callable[[], Draft]] = {
    "expand": lambda: draft([helper.make_node("Expand", ["c", "s"], ["t"])], c=np.ones(1), s=np.array([10**12])),
    "tile": lambda: draft([helper.make_node("Tile", ["c", "s"], ["t"])], c=np.ones(1), s=np.array([2**40])),
    "constant of shape": lambda: draft([helper.make_node("ConstantOfShape", ["s"], ["t"])], s=np.array([2**40])),
    "range": lambda: draft(
        [helper.make_node("Range", ["a", "b", "d"], ["t"])],
        a=np.array(0.0), b=np.array(1e12), d=np.array(1.0),
    ),
    "one hot": lambda: draft(
        [helper.make_node("OneHot", ["i", "n", "v"], ["t"])],
        i=np.zeros(2**12, np.int64), n=np.array(2**30), v=np.zeros(2),
    ),
    "outer product": lambda: draft(
        [helper.make_node("MatMul", ["a", "b"], ["t"])], a=np.ones((2**17, 1)), b=np.ones((1, 2**17))
    ),
    "doubling": lambda: draft(doubling(60), t0=np.ones(2)),
    "many small": lambda: draft(
        [helper.make_node("ConstantOfShape", ["s"], [f"t{n}"]) for n in range(200)], s=np.array([2**26])
    ),
    "work of an einsum": lambda: draft(
        [helper.make_node("Einsum", ["a", "b", "c"], ["t"], equation="i,j,k->")],
        a=np.ones(2**16), b=np.ones(2**16), c=np.ones(2**16),
    ),
    "work of a product": lambda: draft(
        [helper.make_node("MatMul", ["a", "b"], ["t"])], a=np.zeros((2**12, 2**12)), b=np.zeros((2**12, 2**13))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDS)
def test_fold_that_asks_for_too_much_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_folding, "LARGEST_TOTAL", 2**26)
    before = FOLDS[name]()
    begin = time.process_time()
    after = fold_constants(before)

    held = sum(array.nbytes for array in after.constants.values()) - sum(a.nbytes for a in before.constants.values())
    assert held <= room_for_folds(before.constants)
    assert len(after.proto.graph.node) > 0
    assert time.process_time() - begin < 10.0


def test_texts_that_double_are_not_folded() -> None:
    node = helper.make_node("StringConcat", ["t", "t"], ["y"])

    assert not may_fold(node, {}, {"t": np.array(["x"])}, 2**30)


def test_equation_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    proto = external(tmp_path, "w.bin", bytes(8))
    equation = "abcdefghijklmnop," * 40 + "!"
    proto.graph.node[0].CopyFrom(helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation))
    begin = time.process_time()

    with pytest.raises(UserError, match="equation "):
        read(proto, tmp_path)
    assert time.process_time() - begin < 2.0


def test_hint_for_long_or_many_names_takes_no_time() -> None:
    begin = time.process_time()
    assert nearest("x" * 10**6, ["y" * 10**6, "z" * 10**6]) == ""
    nearest("convolution_12345x", [f"convolution_{n}" for n in range(10**5)])

    assert time.process_time() - begin < 5.0


def test_hints_are_looked_for_as_far_as_they_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def hint(word: str, _: object) -> str:
        asked.append(word)
        return " (hint)"

    monkeypatch.setattr(structure, "nearest", hint)
    nodes = [helper.make_node(f"Unknown{number}", ["x"], [f"y{number}"]) for number in range(3 * MOST_ERRORS)]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y0")])

    with pytest.raises(UnsupportedOpError) as refused:
        read(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=8), tmp_path)

    assert str(refused.value).count("(hint)") == len(asked) == MOST_ERRORS
    assert str(refused.value).startswith(f"{3 * MOST_ERRORS} operators have no expansion: ")


def test_nodes_without_operands_or_results(tmp_path: Path) -> None:
    """Optional results allow a node without any; nothing allows a GroupNormalization without operands."""
    for op_type in sorted({schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}):
        for inputs, outputs in ([], ["z"]), (["x"] * 3, []):
            nodes = [helper.make_node(op_type, inputs, outputs), helper.make_node("Relu", ["x"], ["y"])]
            graph = helper.make_graph(nodes, "g", [value("x")], [value("y")])
            with contextlib.suppress(UserError):
                read(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=8), tmp_path)


@pytest.mark.parametrize("axis", [2**31, 2**32 - 1, 2**63 - 1, -(2**31), -(2**63)])
def test_axis_of_more_than_32_bits_is_refused(axis: int, tmp_path: Path) -> None:
    """ONNX's inference keeps the low 32 bits, and writes beside the shape of the means if they are a negative axis."""
    nodes = [helper.make_node("LayerNormalization", ["x", "x"], ["y", "means"], "n", axis=axis)]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")])

    with pytest.raises(UserError, match=f"node 'n': attribute 'axis' is {axis} against -2147483647 to 2147483647"):
        read(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=8), tmp_path)


def test_shape_of_more_elements_than_numpy_counts() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"], start=-10, end=-1), helper.make_node("Neg", ["s"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", (3, 4, 2**63 - 1))], [onnx.ValueInfoProto(name="y")])

    folded = fold_constants(Draft(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=8), {}))

    assert folded.constants["s"].tolist() == [3, 4]


@pytest.mark.parametrize(("shape", "count"), [((3, 2**50), 3 * 2**50), ((2**62, 2), None)])
def test_count_of_more_elements_than_numpy_counts(shape: Sequence[int], count: int | None) -> None:
    nodes = [helper.make_node("Size", ["x"], ["s"]), helper.make_node("Neg", ["s"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", shape)], [onnx.ValueInfoProto(name="y")])

    folded = fold_constants(Draft(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=8), {}))

    assert folded.constants.get("s") == count
