"""Model files: external data, damage, kinds."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend import FILE_KINDS, Coverage, read_model, reference_answer
from tests.examples import rounds

ModelWriter = Callable[[str], Path]
LINEAR = "g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {0,1,2,3,4,5,6,7,8,9,10,11}> { [m] y = MatMul(x, w) }"


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write_external(path: Path, folder: Path) -> Path:
    """Write a model again, with its weights in a file beside it."""
    proto = onnx.load(str(path))
    (weights,) = proto.graph.initializer
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights), weights.name))
    onnx.convert_model_to_external_data(proto, location="weights.bin", size_threshold=0)
    external = folder / "external.onnx"
    onnx.save(proto, str(external))
    return external


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.onnx") == f"{tmp_path}/no.onnx: no such file"


def test_empty_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()

    assert refusal(path) == f"{path}: an empty file against an ONNX model"


def test_folder_is_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "model.onnx"
    folder.mkdir()

    assert refusal(folder) == f"{folder}: a folder against a model file"


def test_other_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.touch()

    assert refusal(path) == f"{path}: '.tflite' against a model file (.onnx, .pt2, .py)"


def test_weights_alone_are_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.touch()

    assert "TorchScript and weights: give a .py with model()" in refusal(path)


def test_a_pointer_of_git_lfs_is_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")

    assert refusal(path) == f"{path}: a pointer of Git LFS against the file that it stands for (git lfs pull)"


def test_text_is_no_onnx_model(tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("hello, I am no protocol buffer")

    assert refusal(path).startswith(f"{path}: not an ONNX model")


def test_every_truncation_is_refused(write_model: ModelWriter) -> None:
    path = write_model(LINEAR)
    content = path.read_bytes()

    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        refusal(path)


def test_damaged_bytes_end_in_one_line_or_a_valid_program(write_model: ModelWriter) -> None:
    path = write_model(
        """g (float[1,1,6,6] x) => (float[1,4] y) <float[1,1,3,3] w={1,2,3,4,5,6,7,8,9}, int64[2] s={1,4}> {
          [c] a = Conv<pads=[0,0,0,0]>(x, w) [r] h = Relu(a) [m] p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(h)
          [v] q = Reshape(p, s) [s] y = Softmax<axis=1>(q)
        }"""
    )
    content = path.read_bytes()
    generator = random.Random(0)
    refusals = []

    count = rounds(300)
    for _ in range(count):
        damaged = bytearray(content)
        damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged)
        try:
            read_model(path).program.sdfg.validate()
        except UserError as error:
            refusals.append(str(error))

    assert len(refusals) > count / 2
    assert not [message for message in refusals if "\n" in message]


def test_external_data_is_read(write_model: ModelWriter, tmp_path: Path) -> None:
    path = write_external(write_model(LINEAR), tmp_path)
    assert (tmp_path / "weights.bin").stat().st_size >= 48

    model = read_model(path)
    inputs = model.example_feeds(seed=3)

    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(model.program.parameters["w"], weights)
    expected = inputs[0].astype(np.float32) @ weights
    np.testing.assert_allclose(reference_answer(model, inputs).outputs[0].astype(np.float32), expected, rtol=1e-5)


def test_missing_external_data_is_named(write_model: ModelWriter, tmp_path: Path) -> None:
    path = write_external(write_model(LINEAR), tmp_path)
    (tmp_path / "weights.bin").unlink()

    message = refusal(path)

    assert message.startswith(f"{path}: its external data cannot be read")
    assert "weights.bin" in message


def test_example_feeds_depend_on_the_seed_alone(write_model: ModelWriter) -> None:
    model = read_model(
        write_model("g (float[2,3] x, int64[4] i, bool[2] b) => (y, j, c) { y = Relu(x) j = Neg(i) c = Not(b) }")
    )

    first, again, other = (model.example_feeds(seed) for seed in (1, 1, 2))

    assert [str(value.dtype) for value in first] == ["float32", "int64", "bool"]
    assert all(np.array_equal(value, same) for value, same in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert set(first[1].tolist()) <= {0, 1}


def test_reference_refuses_other_shapes(write_model: ModelWriter) -> None:
    model = read_model(write_model(LINEAR))

    with pytest.raises(UserError, match=r"^input 'x': float32 \(3, 2\) against float32 \(2, 3\)$"):
        reference_answer(model, [np.zeros((3, 2), np.float32)])
    with pytest.raises(UserError, match=r"^model 'model': 0 inputs against 1$"):
        reference_answer(model, [])


def test_reference_knows_what_old_operators_meant(write_model: ModelWriter) -> None:
    text = """<ir_version: 7, opset_import: ["": 11]>
    g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z)
    <float[3] one = {1,1,1}, float[3] mean = {1,2,3}> {
      y = Softmax<axis=1>(x)
      z = BatchNormalization<epsilon=0.0>(x, one, one, mean, one)
    }"""
    model = read_model(write_model(text))
    x = model.example_feeds(0)[0].astype(np.float32)
    flat = np.exp(x.reshape(2, 12))

    softmax, normalised = (value.astype(np.float32) for value in reference_answer(model, (x,)).outputs)
    np.testing.assert_allclose(softmax, (flat / flat.sum(axis=1, keepdims=True)).reshape(2, 3, 4), rtol=1e-5)
    np.testing.assert_allclose(normalised, x - np.reshape([0, 1, 2], (1, 3, 1)), rtol=1e-5, atol=1e-6)


def test_reference_is_silent_about_undefined_results(write_model: ModelWriter) -> None:
    model = read_model(write_model("g (float[2] x) => (float[2] y) { y = Log(x) }"))

    assert np.isnan(
        reference_answer(model, (np.array([-1, -2], np.float32),)).outputs[0]
    ).all()  # a warning is an error


def test_functions_of_the_model_are_inlined(write_model: ModelWriter) -> None:
    model = read_model(
        write_model(
            '<ir_version: 8, opset_import: ["": 18, "my.lab": 1]> '
            "g (float[2] x) => (float[2] y) { y = my.lab.twice(x) } "
            '<domain: "my.lab", opset_import: ["": 18]> twice (a) => (c) { b = Exp(a) c = Exp(b) }'
        )
    )

    assert [(node.op_type, node.coverage) for node in model.program.nodes] == [("Exp", Coverage.COSTED)] * 2


def test_functions_that_call_themselves_are_refused(write_model: ModelWriter) -> None:
    path = write_model("""<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    g (float[2] x) => (float[2] y) { y = own.f(x) }
    <domain: "own", opset_import: ["" : 18, "own" : 1]>
    f (a) => (b) { b = own.f(a) }
    """)

    assert "its functions cannot be inlined" in refusal(path)


def test_constant_of_negative_size_is_refused(write_model: ModelWriter) -> None:
    path = write_model(LINEAR)
    proto = onnx.load(str(path))
    proto.graph.initializer[0].dims[0] = -3
    onnx.save(proto, str(path))

    assert refusal(path) == "initializer 'w': a size of -3 against no less than 0"


@pytest.mark.parametrize("body", ["r = Range(zero, most, one) y = Add(x, r)", "y = Concat<axis=0>(x, v, v, v)"])
def test_long_vectors_take_no_time(body: str, write_model: ModelWriter) -> None:
    """ONNX's inference follows each of their elements, as if they were shapes: here, of some terabytes."""
    path = write_model(f"""g (int64[1] x, int64[1099511627776] v) => (y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64 most = {{1099511627776}}> {{ {body} }}""")

    assert read_model(path).program.outputs[0].shape[0] >= 2**40


@pytest.mark.parametrize(
    "body",
    [
        "y = Add(v, v)",
        "y = Mul(v, one)",
        "y = Sub(one, v)",
        "y = Cast<to=7>(v)",
        "y = Gather<axis=0>(v, at)",
        "y = Slice(v, at, end)",
        "y = Unsqueeze(v, at)",
        "c = Size(v) y = Add(c, one)",
        "n = Neg(v) y = Slice(n, at, end)",
    ],
)
@pytest.mark.parametrize("dtype", ["int32", "float"])
def test_long_vectors_that_are_read_take_no_memory(body: str, dtype: str, write_model: ModelWriter) -> None:
    """ONNX's inference makes a dimension of each element of what might be a shape, whatever its type."""
    count = "int64" if "Size" in body else dtype
    path = write_model(f"""g ({dtype}[1099511627776] v, {count}[1] one) => (y)
    <int64[1] at = {{0}}, int64[1] end = {{5}}> {{ {body} }}""")

    assert read_model(path).program.outputs[0].shape[-1] in {1, 5, 2**40}


def test_file_kinds_are_plugins() -> None:
    kinds = {plugin.value.name: plugin.origin for plugin in FILE_KINDS.collect().plugins}

    assert kinds == {
        ".onnx": "dfcompile.frontend.file_kinds.onnx_file",
        ".pt2": "dfcompile.frontend.file_kinds.python_file",
        ".py": "dfcompile.frontend.file_kinds.python_file",
        ".py (@dace.program)": "dfcompile.frontend.file_kinds.dace_file",
    }
