"""Models that contradict themselves: each ends in one clear line that names the node."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from dfcompile.errors import UnsupportedOpError, UserError
from dfcompile.frontend import read_model

CONTRADICTIONS = {
    "g (float[1,7,6,6] x, float[3,8,3,3] w) => (y) { [conv1] y = Conv(x, w) }": (
        "node 'conv1': input 'x' has 7 channels against weights for 8 (groups 1)"
    ),
    "g (float[1,8,6,6] x, float[4,2,3,3] w) => (y) { [c] y = Conv<group=3>(x, w) }": (
        "node 'c': input 'x' has 8 channels against weights for 6 (groups 3)"
    ),
    "g (float[1,4,6,6] x, float[3,2,3,3] w) => (y) { [c] y = Conv<group=2>(x, w) }": (
        "node 'c': 3 filters against a multiple of 2 groups"
    ),
    "g (float[1,8,6,6] x, float[4,8,3,3] w, float[5] b) => (y) { [c] y = Conv(x, w, b) }": (
        "node 'c': 'b' is 5 against 4 filters"
    ),
    "g (float[1,8,6] x, float[4,8,3,3] w) => (y) { [c] y = Conv(x, w) }": (
        "node 'c': 'w' has 4 dimensions (4×8×3×3) against 3"
    ),
    "g (float[1,8,6,6] x, float[4,8,3,3] w) => (y) { [c] y = Conv<kernel_shape=[5,5]>(x, w) }": (
        "node 'c': attribute 'kernel_shape' is 5×5 against 3×3 weights"
    ),
    "g (float[1,8,6,6] x, float[4,8,3,3] w) => (y) { [c] y = Conv<strides=[1]>(x, w) }": (
        "node 'c': attribute 'strides' has 1 entries against 2"
    ),
    "g (float[1,8,6,6] x, float[4,8,3,3] w) => (y) { [c] y = Conv<pads=[-1,0,0,0]>(x, w) }": (
        "node 'c': attribute 'pads' has -1 against at least 0"
    ),
    "g (float[1,8,6,6] x, float[4,3,3,3] w) => (y) { [c] y = ConvTranspose(x, w) }": (
        "node 'c': input 'x' has 8 channels against weights for 4"
    ),
    "g (float[1,1,3,3] x) => (y) { [p] y = MaxPool<kernel_shape=[2,2], strides=[0,1]>(x) }": (
        "node 'p': attribute 'strides' has 0 against at least 1"
    ),
    "g (float[1,1,3,3] x) => (y) { [p] y = MaxPool<kernel_shape=[5,5]>(x) }": (
        "node 'p': output 'y': dimension 2 is -1 against a size of at least 1"
    ),
    "g (float[1,1,3,3] x, float[1,1,5,5] w) => (y) { [c] t = Conv(x, w) [r] y = Relu(t) }": (
        "node 'c': output 't': dimension 2 is -1 against a size of at least 1"
    ),
    "g (float[1099511627776] x) => (y) <int64[2] shape = {1048576, 1}> { [e] y = Expand(x, shape) }": (
        "node 'e': output 'y': 1152921504606846976 elements against at most 281474976710656"
    ),
    "g (float[2,3] x, float[4,3] w) => (y) { [m] y = Gemm(x, w) }": (
        "node 'm': 'x' has an inner dimension of 3 against 4 of 'w'"
    ),
    "g (float[2,3] x, float[4,3] w, float[5] b) => (y) { [m] y = Gemm<transB=1>(x, w, b) }": (
        "node 'm': 'b' is 5 against a product of 2×4"
    ),
    "g (float[2,3] x, float[2,4] w) => (y) { [m] y = MatMul(x, w) }": (
        "node 'm': 'x' has an inner dimension of 3 against 2 of 'w'"
    ),
    "g (float[5,2,3] x, float[4,3,2] w) => (y) { [m] y = MatMul(x, w) }": (
        "node 'm': batches of 5 in 'x' against 4 in 'w'"
    ),
    "g (float[2,3] x, float[2,4] w) => (y) { [a] y = Add(x, w) }": (
        "node 'a': 'x' is 2×3 against 2×4 of 'w' (they do not broadcast)"
    ),
    "g (float[2,3] x, float[2,4] w) => (y) { [c] y = Concat<axis=0>(x, w) }": (
        "node 'c': 'w' is 2×4 against 2×3 of 'x' (all but axis 0 must agree)"
    ),
    "g (float[2,3,4] x, float[3] s, float[4] v) => (y) { [b] y = BatchNormalization(x, s, s, s, v) }": (
        "node 'b': 'v' is 4 against 3 channels"
    ),
    "g (float[2,3,4] x, float[3] s) => (y) { [n] y = LayerNormalization(x, s) }": (
        "node 'n': 's' is 3 against 4 normalised elements of 'x'"
    ),
    "g (float[2,3] x, int64[2,3] w) => (y) { [a] y = Add(x, w) }": (
        "node 'a': input 'w' is int64 against float32 of 'x' (Add takes one element type; add a Cast)"
    ),
    "g (int64[2,3] x) => (y) { [s] y = Sigmoid(x) }": (
        "node 's': input 'x' is int64 against float16, bfloat16, float32, float64 for X of Sigmoid"
    ),
    "g (float[2,3] xx) => (float[2,3] y) { [r] y = Relu(x) }": (
        "node 'r': input 'x' is no input, initializer or result of the model (did you mean 'xx'?)"
    ),
    "g (float[2] x) => (float[2] y) { [a] y = Relu(x) [b] y = Exp(x) }": (
        "node 'b': output 'y' is already given by node 'a'"
    ),
    "g (float[2] x) => (float[2] x) { [a] x = Relu(x) }": "node 'a': output 'x' is already given by an input",
    "g (float[2] x) => (float[2] y) { [a] y = Relu(z) [b] z = Exp(x) }": (
        "node 'a': reads 'z' before node 'b' gives it (sort the nodes)"
    ),
    "g (float[2] x) => (float[2] y) { [a] y = Add(x, z) [b] z = Exp(y) }": "model: nodes 'b', 'a' form a cycle",
    "g (float[2] x) => (float[2] z) { [a] y = Relu(x) }": "output 'z': nothing in the model gives it (known: x, y)",
    "g (float[2] x) => (float[2] y, float[2] y) { [a] y = Relu(x) }": "output 'y': stands twice in the model",
    "g (float[2,3] x) => (float[2,4] y) { [a] y = Relu(x) }": (
        "output 'y': dimension 1 is declared as 4 against 3 computed"
    ),
    "g (float[2] x) => (float[2] y) { [l] y = LeakyRelu<alpha: float = nan>(x) }": (
        "node 'l': attribute 'alpha' is nan against a finite number"
    ),
    "g (float[2] x) => (float[2] y) { [l] y = Relu<foo=3>(x) }": (
        "node 'l': Unrecognized attribute: foo for operator Relu"
    ),
    "g (float[2,3] x, int64[2] s) => (float[a,b] y) { [r] y = Reshape(x, s) }": (
        "node 'r': the shape of 'y' depends on data against a static shape (Reshape of values that are no constants)"
    ),
    "g (float[2,3] x) => (float[a,b] y) <int64[2] s={4,2}> { [r] y = Reshape(x, s) }": (
        "node 'r': 6 elements against 8 of the new shape (4, 2)"
    ),
    "g (float[2,3] x) => (float[a,b] y) { [t] y = Transpose<perm=[0,0]>(x) }": (
        "node 't': attribute 'perm' is [0, 0] against an order of 2 axes"
    ),
    "g (float[2] x) => (y) <int64[2] s={7,8}, int64[1] t={9}> { [g] u = Gather<axis=0>(s, t) [e] y = Expand(x, u) }": (
        "node 'g': index 9 against 2 elements of axis 0 of 's'"
    ),
    "g (string[2] x) => (string[2] y) { [r] y = Identity(x) }": (
        "input 'x': element type 'string' against float16, bfloat16, float32, float64, int8, int16, int32, "
        "int64, uint8, uint16, uint32, uint64, bool, complex64, complex128, float8_e4m3fn, float8_e5m2, int4, uint4, "
        "int2, uint2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn (cast it in the model)"
    ),
    "g (seq(float[2]) x) => (float[2] y) { [s] y = ConcatFromSequence<axis=0>(x) }": (
        "input 'x': sequence against a tensor (only dense tensors can be compiled)"
    ),
    "g (float[2,-3] x) => (float[2,3] y) { [r] y = Relu(x) }": (
        "input 'x': dimension 1 is -3 against a size of at least 0 (give --shape x=2x1, say)"
    ),
    '<ir_version: 8, opset_import: ["": 0]> g (float[2] x) => (float[2] y) { y = Relu(x) }': (
        "model: operator set 0 against 7 to "
    ),
    '<ir_version: 3, opset_import: ["": 6]> g (float[2] x) => (float[2] y) { y = Relu(x) }': (
        f"model: operator set 6 against 7 to {onnx.defs.onnx_opset_version()} (convert it by onnx.version_converter)"
    ),
    "<ir_version: 1> g (float[2] x) => (float[2] y) { y = Relu(x) }": "model: operator set 1 against 7 to ",
    '<ir_version: 8, opset_import: ["": 999]> g (float[2] x) => (float[2] y) { y = Relu(x) }': (
        "model: operator set 999 against 7 to "
    ),
    "g (float[2] x) => (float[2] y) { [g] y = Gelu(x) }": (
        "node 'g': Gelu is no operator of set 18 (convert the model)"
    ),
}

UNSUPPORTED = {
    "g (float[2] x) => (float[2] y) { [r] y = Relux(x) }": (
        "node 'r': no operator 'Relux' in ONNX (did you mean 'Relu'?)"
    ),
    '<ir_version: 8, opset_import: ["": 18, "my.lab": 1]> g (float[2] x) => (float[2] y) { [r] y = my.lab.Op(x) }': (
        "node 'r': operator my.lab.Op against an operator of ONNX itself"
    ),
    "g (float[2] x, bool c) => (float[2] y) { [i] y = If(c) <then_branch = t () => (float[2] z) { z = Relu(x) },"
    " else_branch = e () => (float[2] z) { z = Exp(x) }> }": (
        "node 'i': If holds a graph against a plain operator "
        "(its condition 'c' depends on an input, which --input can fix)"
    ),
}


@pytest.mark.parametrize(("text", "message"), CONTRADICTIONS.items(), ids=CONTRADICTIONS.values())
def test_contradiction_is_one_line(text: str, message: str, write_model: Callable[[str], Path]) -> None:
    path = write_model(text)

    with pytest.raises(UserError) as caught:
        read_model(path)

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), UNSUPPORTED.items(), ids=UNSUPPORTED.values())
def test_unknown_operator_is_unsupported(text: str, message: str, write_model: Callable[[str], Path]) -> None:
    path = write_model(text)

    with pytest.raises(UnsupportedOpError) as caught:
        read_model(path)

    assert str(caught.value) == message


def test_nan_weights_are_the_users_business(write_model: Callable[[str], Path]) -> None:
    path = write_model("g (float[2] x) => (float[2] y) <float[2] w = {nan, inf}> { y = Add(x, w) }")

    assert str(read_model(path).program.parameters["w"].tolist()) == "[nan, inf]"
