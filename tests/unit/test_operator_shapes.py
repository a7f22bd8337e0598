"""What bounds are told of a model's operators."""

from collections.abc import Mapping

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

from dfcompile.io_bounds.curve import Rules
from dfcompile.io_bounds.einsum.convolution import Convolution, Pooling
from dfcompile.io_bounds.einsum.plain import Attention, gemm
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.fusion.epilogues import with_epilogues
from dfcompile.io_bounds.operators import BoundedModel, Rows
from dfcompile.operator_shapes import bounded_model
from tests.onnx_nodes import Array
from tests.onnx_text import program_from_model, program_from_text


def bounded(text: str) -> BoundedModel:
    return bounded_model(program_from_text(text))


def test_padded_convolutions_keep_their_windows() -> None:
    model = bounded("agraph (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,4,4] y) "
                    "{ y = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w) }")  # fmt: skip
    (op,) = model.operators

    assert op.shape == Convolution(1, 1, 3, 4, (WindowAxis(4, 3, 2, 1, 1, 8),) * 2)
    assert model.compulsory_bytes == 4 * (3 * 64 + 4 * 27 + 4 * 16)


def test_windows_of_single_words_are_products_of_the_words_that_are_read() -> None:
    model = bounded("agraph (float[2,6,8,8] x, float[4,3,1,1] w) => (float[2,4,4,4] y) "
                    "{ y = Conv<strides = [2, 2], group = 2>(x, w) }")  # fmt: skip
    (op,) = model.operators

    assert (op.count, op.shape) == (2, gemm(2 * 16, 3, 2))
    assert [operand.words for operand in op.reads] == [2 * 6 * 16, 12]


def test_broadcast_dimensions_of_products_are_rows_or_columns() -> None:
    model = bounded("agraph (float[5,2,3,4] a, float[5,1,4,6] b) => (float[5,2,3,6] y) { y = MatMul(a, b) }")
    (op,) = model.operators

    assert (op.count, op.shape) == (5, gemm(2 * 3, 4, 6))


def test_heads_that_share_keys_are_rows() -> None:
    graph = (
        "agraph (float[1,8,10,4] q, float[1,2,12,4] k, float[1,2,12,6] v) => (float[1,8,10,6] y) "
        "{ y = Attention(q, k, v) }"
    )
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> {graph}')
    (op,) = bounded_model(program_from_model(model)).operators

    assert (op.count, op.shape) == (2, Attention(40, 12, 4, 6))


def test_rows_views_and_floors() -> None:
    model = bounded("agraph (float[4,8] x, float[8] b) => (float[8,4] y, float[4,8] z) "
                    "{ a = Add(b, x) s = Softmax(a) f = Flatten(s) z = Relu(f) y = Transpose(s) }")  # fmt: skip
    shapes = {op.op_type: op.shape for op in model.operators}

    assert shapes == {"Add": Rows(), "Softmax": Rows(8, passes=2), "Relu": Rows(), "Transpose": Rows()}
    assert model.operators[0].reads[0].tensor == "x"
    assert model.operators[2].reads[0].tensor == model.operators[1].writes[0].tensor


def test_what_is_selected_is_read_as_often_as_it_is_written() -> None:
    model = bounded("agraph (float[100,8] table, int64[3] i) => (float[3,8] y) { y = Gather(table, i) }")
    (op,) = model.operators

    assert op.is_floor
    assert [operand.words for operand in op.reads] == [24, 3]


def test_a_result_as_large_as_its_operand_may_need_all_of_it() -> None:
    model = bounded("agraph (float[4,8] x) => (float[4,8] y) { a = Constant<value_int = 1>() y = CumSum(x, a) }")
    (op,) = model.operators

    assert op.is_floor


def test_attention_with_a_mask_may_need_fewer_products() -> None:
    graph = (
        "agraph (float[1,8,10,4] q, float[1,8,12,4] k, float[1,8,12,6] v) => (float[1,8,10,6] y) "
        "{ y = Attention<is_causal = 1>(q, k, v) }"
    )
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> {graph}')
    (op,) = bounded_model(program_from_model(model)).operators

    assert op.shape == Attention(10, 12, 4, 6, is_masked=True)
    assert op.proved(3) == op.compulsory_words


def test_poolings_are_windows_over_each_channel() -> None:
    model = bounded("agraph (float[2,6,9,9] x) => (float[2,6,4,4] y) "
                    "{ y = MaxPool<kernel_shape = [3, 2], strides = [2, 2]>(x) }")  # fmt: skip
    (op,) = model.operators
    windows = Convolution(2, 6, 1, 1, (WindowAxis(4, 3, 2, 1, 0, 9), WindowAxis(4, 2, 2, 1, 0, 9)))

    assert op.shape == Pooling(windows)
    assert [operand.words for operand in op.reads] == [2 * 6 * 9 * 8]
    assert op.curve(Rules()).least_traffic == op.compulsory_words == 2 * 6 * (9 * 8 + 16)


def test_a_result_behind_one_that_is_not_used_has_no_windows() -> None:
    model = bounded("agraph (float[1,2,4,4] x) => (int64[1,2,2,2] i) "
                    "{ y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }")  # fmt: skip
    (op,) = model.operators

    assert op.shape is None
    assert [operand.words for operand in op.writes] == [8]


def test_words_of_quantised_convolutions_have_their_own_sizes() -> None:
    model = bounded("agraph (uint8[1,3,8,8] x, int8[4,3,3,3] w) => (int32[1,4,6,6] y) { y = ConvInteger(x, w) }")
    (op,) = model.operators

    assert op.shape == Convolution(1, 1, 3, 4, (WindowAxis(6, 3, 1, 1, 0, 8),) * 2)
    assert (op.element_bytes, [operand.units for operand in (*op.reads, *op.writes)]) == (1, [1, 1, 4])
    assert op.compulsory_words == op.curve(Rules()).least_traffic == 3 * 64 + 4 * 27 + 4 * 4 * 36


def test_quantised_convolutions_are_convolutions() -> None:
    model = bounded("agraph (uint8[1,3,8,8] x, float xs, uint8 xz, int8[4,3,3,3] w, float ws, int8 wz, float ys, "
                    "uint8 yz) => (uint8[1,4,6,6] y) { y = QLinearConv(x, xs, xz, w, ws, wz, ys, yz) }")  # fmt: skip
    (op,) = model.operators

    assert op.shape == Convolution(1, 1, 3, 4, (WindowAxis(6, 3, 1, 1, 0, 8),) * 2)
    assert [operand.tensor for operand in op.reads[:2]] == ["x", "w"]
    assert op.compulsory_words == 3 * 64 + 4 * 27 + 4 * 36 + 3 * 4 + 3


def test_integer_products_have_sums_of_four_bytes() -> None:
    model = bounded("agraph (uint8[5,7] a, uint8[7,3] b) => (int32[5,3] y) { y = MatMulInteger(a, b) }")
    (op,) = model.operators

    assert op.shape == gemm(5, 7, 3)
    assert op.curve(Rules()).least_traffic == op.compulsory_words == 35 + 21 + 4 * 15
    assert op.curve(Rules()).least_size == 1 + 1 + 4


def test_a_cast_is_no_part_of_what_makes_its_operand() -> None:
    model = bounded("agraph (float[4,8] x, float[8,8] w, bool[4,8] c) => (float16[4,8] y) "
                    "{ a = MatMul(x, w) b = Where(c, a, x) y = Cast<to = 10>(b) }")  # fmt: skip
    first, second = with_epilogues(model).operators

    assert (first.op_type, len(first.within), first.element_bytes) == ("MatMul", 1, 1)
    assert [(operand.tensor, operand.size) for operand in first.reads] == [("x", 128), ("w", 256), ("c", 32)]
    assert second.op_type == "Cast"
    assert second.compulsory_words * second.element_bytes == 32 * 4 + 32 * 2


def with_constants(body: str, ports: str, constants: Mapping[str, Array], opset: int = 21) -> BoundedModel:
    """Return the bounds of a graph with constants: ``ports`` are its inputs and outputs, ``body`` its nodes."""
    text = f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> g {ports} {{ {body} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return bounded_model(program_from_model(model))


HALF = np.array(0.5, np.float32)


@pytest.mark.parametrize(
    ("dtype", "size"), [("int8", 96), ("uint8", 96), ("int16", 192), ("int4", 48), ("uint4", 48), ("float8_e4m3fn", 96)]
)
def test_quantised_weights_move_in_the_bytes_that_they_are_stored_in(dtype: str, size: int) -> None:
    weights = np.ones((16, 6)).astype(dtype)
    body, ports = "d = DequantizeLinear (w, s) y = MatMul (x, d)", "(float[4,16] x) => (float[4,6] y)"

    model = with_constants(body, ports, {"w": weights, "s": HALF})

    assert model.compulsory_bytes == 4 * (4 * 16 + 4 * 6) + size


def test_constant_integers_of_products_and_sums_move_and_settings_do_not() -> None:
    zero = np.zeros((), np.int8)
    product = with_constants(
        "y = QLinearMatMul (x, s, z, w, s, z, s, z)",
        "(int8[4,16] x) => (int8[4,6] y)",
        {"w": np.ones((16, 6), np.int8), "s": HALF, "z": zero},
    )
    added = with_constants("y = Add (x, w)", "(int64[4,6] x) => (int64[4,6] y)", {"w": np.arange(24).reshape(4, 6)})
    gathered = with_constants(
        "y = Gather <axis = 0> (x, i)", "(float[9,6] x) => (float[4,6] y)", {"i": np.array([2, 7, 2, -2])}
    )

    assert product.compulsory_bytes == 4 * 16 + 16 * 6 + 4 * 6
    assert added.compulsory_bytes == 3 * 8 * 24
    assert gathered.compulsory_bytes == 4 * 6 * (2 + 4)  # rows 2 and 7, once each


def test_folded_parameters_count_as_folded() -> None:
    four = {name: np.linspace(1, 2, 5, dtype=np.float32) for name in "abmv"}
    normal = with_constants(
        "y = BatchNormalization (x, a, b, m, v)", "(float[2,5,3] x) => (float[2,5,3] y)", four, opset=15
    )
    weights = {"w": (1, 12, 4), "r": (1, 12, 3), "b": (1, 24)}
    recurrent = with_constants(
        "y = LSTM <hidden_size = 3> (x, w, r, b)",
        "(float[6,1,4] x) => (float[6,1,1,3] y)",
        {name: np.ones(shape, np.float32) for name, shape in weights.items()},
    )

    assert normal.compulsory_bytes == 4 * (30 + 30 + 2 * 5)
    assert recurrent.compulsory_bytes == 4 * (24 + 48 + 36 + 12 + 18)


@pytest.mark.parametrize(
    ("equation", "shape", "result", "read"),
    [
        ("ii->i", (5, 5), (5,), 5),
        ("iji->j", (3, 4, 3), (4,), 12),
        ("...ii->...", (2, 3, 3), (2,), 6),
        ("ij->i", (2, 3), (2,), 6),
    ],
)
def test_of_repeated_letters_diagonals_are_read(
    equation: str, shape: tuple[int, ...], result: tuple[int, ...], read: int
) -> None:
    sizes = [",".join(map(str, each)) for each in (shape, result)]
    model = with_constants(
        f'y = Einsum <equation = "{equation}"> (x)', f"(float[{sizes[0]}] x) => (float[{sizes[1]}] y)", {}
    )

    assert model.compulsory_bytes == 4 * (read + np.prod(result))


@pytest.mark.parametrize(("body", "result", "read"), [
    ("y = Trilu (x)", "4,6", 6 + 5 + 4 + 3), ("y = Trilu <upper = 0> (x)", "4,6", 1 + 2 + 3 + 4),
    ("y = Pad (x, p)", "6,7", 24), ("y = Pad (x, n)", "3,6", 0),
])  # fmt: skip
def test_what_is_left_out_is_not_read(body: str, result: str, read: int) -> None:
    pads = {"p": np.array([1, 0, 1, 1]), "n": np.array([0, 0, -1, 0])}
    used = {name: value for name, value in pads.items() if f"{name})" in body}
    model = with_constants(body, f"(float[4,6] x) => (float[{result}] y)", used)

    assert model.compulsory_bytes == 4 * (read + np.prod([int(size) for size in result.split(",")]))


ROW = {"b": [2], "e": [3]}
LSTM = {"w": (1, 12, 4), "r": (1, 12, 3)}
OF_LSTM = "y = LSTM <hidden_size = 3> (x, w, r)"
OF_GEMM = "(float[4,6] x, float[6,2] w, float[2] c) => (float[4,2] y)"


@pytest.mark.parametrize(
    ("body", "ports", "constants", "read", "written"),
    [
        ("y = Slice (x, b, e)", "(float[4,6] x) => (float[1,6] y)", ROW, 6, 6),
        ("a = Relu (x) y = Slice (a, b, e)", "(float[4,6] x) => (float[1,6] y)", ROW, 6, 6),
        ("a = Add (x, c) y = Slice (a, b, e)", "(float[4,6] x, float[4,6] c) => (float[1,6] y)", ROW, 12, 6),
        ("y = Tile (x, s)", "(float[4,6] x) => (float[8,6] y)", {"s": [2, 1]}, 24, 48),
        ("y = Resize (x, , , s)", "(float[1,1,6,4] x) => (float[1,1,2,4] y)", {"s": [1, 1, 2, 4]}, 4, 8),
        ("y = GatherND (x, i)", "(float[4,6] x) => (float[3,6] y)", {"i": [[1], [-3], [0]]}, 12, 18),
        ("y = Gemm <alpha = 0.0> (x, w, c)", OF_GEMM, {}, 2, 8),
        ("y = Gemm <beta = 0.0> (x, w, c)", OF_GEMM, {}, 36, 8),
        ("y = RoiAlign (x, r, i)", "(float[1,1,9,9] x, float[1,4] r, int64[1] i) => (float[1,1,1,1] y)", {}, 6, 1),
        (
            "y = ConvTranspose <strides = [2, 2]> (x, w)",
            "(float[1,1,3,3] x, float[1,1,1,1] w) => (float[1,1,5,5] y)", {}, 10, 9,
        ),
        (  # of each axis every second one, of 5 the first one beside a pad
            "y = Col2Im <strides = [2], dilations = [2], pads = [1, 0]> (x, image, block)",
            "(float[1,2,2] x) => (float[1,1,5] y)", {"image": [5], "block": [2]}, 0, 2,
        ),
        (OF_LSTM, "(float[1,1,4] x) => (float[1,1,1,3] y)", LSTM, 4, 3),
        (OF_LSTM, "(float[2,1,4] x) => (float[2,1,1,3] y)", LSTM, 8 + 48 + 36, 6),
    ],
)  # fmt: skip
def test_what_may_be_left_out_is_not_proved_to_move(
    body: str, ports: str, constants: Mapping[str, object], read: int, written: int
) -> None:
    values = {
        name: np.ones(value, np.float32) if isinstance(value, tuple) else np.asarray(value, np.int64)
        for name, value in constants.items()
    }

    assert with_constants(body, ports, values).compulsory_bytes == 4 * (read + written)


@pytest.mark.parametrize(("steps", "read"), [(2, 8 + 48 + 36), (1, 4)])
def test_a_first_state_of_zeros_is_as_if_it_were_not_given(steps: int, read: int) -> None:
    values = {name: np.ones(shape, np.float32) for name, shape in LSTM.items()}
    values |= {name: np.zeros((1, 1, 3), np.float32) for name in ("h", "c")}
    model = with_constants(
        "y = LSTM <hidden_size = 3> (x, w, r, , , h, c)",
        f"(float[{steps},1,4] x) => (float[{steps},1,1,3] y)",
        values,
    )

    assert model.compulsory_bytes == 4 * (read + 3 * steps)
