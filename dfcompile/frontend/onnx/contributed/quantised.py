"""Contributed operators on steps of 8 bits and fewer, as onnxruntime's quantiser writes them."""

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import helper

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import Call, Results, like, operators
from dfcompile.frontend.onnx.known_shapes import Shape, require, window_result


def _broadcast(result: str, *names: str) -> Results:
    """Return what gives the shape of a result that is as large as some operands together."""
    return lambda call: {result: _together(names, [call.known(name) for name in names])}


def _together(names: Sequence[str], shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which some shapes broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        found = f"{' and '.join(map(repr, names))} are {list(shapes)}"
        raise UserError(f"{found} against shapes that broadcast") from error


def _global_pool(call: Call) -> Mapping[str, Shape]:
    shape = call.known_at_least("X", 3)
    return {"Y": (*shape[:2], *(1 for _ in shape[2:]))}


def _windows(op_type: str, operands: Sequence[str], result: str) -> Results:
    """Return what gives the shape of the result of pooling or a convolution."""

    def results(call: Call) -> Mapping[str, Shape]:
        given = {name: value for name, value in call.attributes.items() if name != "channels_last"}
        node = helper.make_node(op_type, operands, ["y"])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in given.items())
        shape = window_result(node, tuple(call.shape(name) for name in operands))
        return {} if shape is None else {result: shape}

    return results


def _product(a: Shape, b: Shape) -> Mapping[str, Shape]:
    """Return the shape of ``Y = A @ B``, as numpy has it."""
    require(a and b, "'A' or 'B' is a scalar against a matrix")
    inner = b[-2] if len(b) > 1 else b[0]
    require(a[-1] == inner, f"'A' has an inner dimension of {a[-1]} against {inner} of 'B'")
    return {"Y": (*_together(("A", "B"), (a[:-2], b[:-2])), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))}


def _matmul(call: Call) -> Mapping[str, Shape]:
    return _product(call.known("A"), call.known("B"))


def _gemm(call: Call) -> Mapping[str, Shape]:
    a, b = call.all_known(A=(2,), B=(2,))
    return _product(a[::-1] if call.integer("transA") else a, b[::-1] if call.integer("transB") else b)


def _few_bits(call: Call) -> Mapping[str, Shape]:
    """``A[…, k] @ W[n, k].T``; W in blocks along k, ``B[n, blocks, bytes]``."""
    rows, inner = call.integer("N"), call.integer("K")
    block, bits = call.integer("block_size"), call.integer("bits", 4)
    sizes = (rows, inner, block, bits)
    require(min(sizes) >= 1, f"attributes 'N', 'K', 'block_size' and 'bits' are {str(sizes)[1:-1]} against 1")
    blocks, size = -(-inner // block), block * bits // 8
    call.expect("B", (rows, blocks, size), (rows, blocks * size))
    call.expect("scales", (rows, blocks), (rows * blocks,))
    call.expect("bias", (rows,))
    data = call.known("A")
    require(data and data[-1] == inner, f"'A' is {list(data)} against {inner} columns")
    return {"Y": (*data[:-1], rows)}


def _concat(call: Call) -> Mapping[str, Shape]:
    """Operands one behind the other; of each its data, scale and zero point."""
    parts = [shape for name, shape in call.shapes.items() if name.startswith("inputs")][::3]
    known = [shape for shape in parts if shape is not None]
    if not known or len(known) < len(parts):
        return {}
    rank, axis = len(known[0]), call.integer("axis")
    require(-rank <= axis < rank, f"axis {axis} against {rank} dimensions of the operands")
    axis %= rank
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in known}
    require(len(others) <= 1, f"operands are {known} against shapes that differ along axis {axis} alone")
    return {"Y": (*known[0][:axis], sum(shape[axis] for shape in known), *known[0][axis + 1 :])}


_TYPES = {
    **dict.fromkeys(("T", "T1", "T2", "T3", "TA", "TB"), ("uint8", "int8")),
    **dict.fromkeys(("TC", "T4", "I"), ("int32",)),
    "F": ("float32",),
    "R": ("float32", "float16"),
}
QUANTISED = operators(
    """
    QLinearAdd A:T A_scale:F A_zero_point:T? B:T B_scale:F B_zero_point:T? C_scale:F C_zero_point:T? -> C:T
    QLinearMul A:T A_scale:F A_zero_point:T? B:T B_scale:F B_zero_point:T? C_scale:F C_zero_point:T? -> C:T
    QLinearSigmoid X:T X_scale:F X_zero_point:T? Y_scale:F Y_zero_point:T? -> Y:T
    QLinearLeakyRelu X:T X_scale:F X_zero_point:T? Y_scale:F Y_zero_point:T? -> Y:T | alpha=0.01
    QLinearSoftmax X:T X_scale:F x_zero_point:T? y_scale:F y_zero_point:T -> Y:T | axis=-1 opset:int!
    QLinearWhere condition:B X:T x_scale:F x_zero_point:T Y:T y_scale:F y_zero_point:T z_scale:F z_zero_point:T
        -> Z:T || B=bool
    QLinearAveragePool X:T x_scale:F x_zero_point:T? y_scale:F y_zero_point:T? -> Y:T
        | auto_pad="NOTSET" pads:ints strides:ints kernel_shape:ints channels_last=0 ceil_mode=0 count_include_pad=0
    QLinearGlobalAveragePool X:T x_scale:F x_zero_point:T y_scale:F y_zero_point:T -> Y:T | channels_last=0
    QLinearConv x:T1 x_scale:F x_zero_point:T1 w:T2 w_scale:F w_zero_point:T2 y_scale:F y_zero_point:T3 B:T4? -> y:T3
        | auto_pad="NOTSET" pads:ints strides:ints kernel_shape:ints channels_last=0 dilations:ints group=1
    QLinearConcat Y_scale:F Y_zero_point:T inputs:V* -> Y:T | axis:int! | V=uint8,int8,float32
    QGemm A:TA a_scale:F a_zero_point:TA B:TB b_scale:F b_zero_point:TB C:TC? y_scale:F? y_zero_point:TY? -> Y:TY
        | alpha=1.0 transA=0 transB=0 | TY=float32,uint8,int8
    DynamicQuantizeMatMul A:F B:T b_scale:F b_zero_point:T? bias:F? -> Y:F
    MatMulIntegerToFloat A:T1 B:T2 a_scale:R b_scale:R a_zero_point:T1? b_zero_point:T2? bias:R? -> Y:R
    MatMulNBits A:R B:U scales:R zero_points:Z? g_idx:I? bias:R? -> Y:R
        | K:int! N:int! block_size:int! bits=4 accuracy_level=0 weight_prepacked=0
        | R=float32,float16,bfloat16 U=uint8 Z=uint8,float16,float32,bfloat16
    QuantizeLinear x:R y_scale:R y_zero_point:S? -> y:S | axis:int | S=uint8,int8,int16,uint16,int4,uint4
    DequantizeLinear x:S x_scale:R x_zero_point:S? -> y:R | axis:int | S=int8,uint8,int16,uint16,int32,int4,uint4
    """,
    {
        **dict.fromkeys(("QLinearAdd", "QLinearMul"), _broadcast("C", "A", "B")),
        **dict.fromkeys(("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"), like("X", "Y")),
        "QLinearWhere": _broadcast("Z", "condition", "X", "Y"),
        "QLinearAveragePool": _windows("AveragePool", ("X",), "Y"),
        "QLinearGlobalAveragePool": _global_pool,
        "QLinearConv": _windows("Conv", ("x", "w"), "y"),
        "QLinearConcat": _concat,
        "QGemm": _gemm,
        **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _matmul),
        "MatMulNBits": _few_bits,
        **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), like("x", "y")),
    },
    _TYPES,
)
