"""Operands and attributes that contradict each other where ONNX's inference says nothing: refused in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import read_model

NORMALISED = "g (float[2,4,5] x, float[2] s, float[3] t, float[4] u) => (y)"
CONTRADICTIONS = {
    # windows
    "g (float[1,1,4] x, float[1,1,3] w) => (y) { [c] y = Conv<auto_pad='SAME_UPPER', pads=[1,1]>(x, w) }": (
        "node 'c': attribute 'auto_pad' is SAME_UPPER and 'pads' is [1, 1] against one of the two"
    ),
    "g (float[1,1,4] x) => (y) { [p] y = MaxPool<auto_pad='VALID', kernel_shape=[2], pads=[1,0]>(x) }": (
        "node 'p': attribute 'auto_pad' is VALID and 'pads' is [1, 0] against one of the two"
    ),
    "g (float[1,1,4] x) => (y) { [p] y = MaxPool<auto_pad='SAME', kernel_shape=[2]>(x) }": (
        "node 'p': attribute 'auto_pad' is 'SAME' against NOTSET, VALID, SAME_UPPER or SAME_LOWER"
    ),
    "g (float[1,1,4] x) => (y) { [p] y = AveragePool<kernel_shape=[2], pads=[0,2]>(x) }": (
        "node 'p': attribute 'pads' has 2 against less than the window's 2 (a window may not lie in the padding alone)"
    ),
    "g (float[1,2,4] x, float[1,2,5] w) => (y) { [c] y = Conv<strides=[2]>(x, w) }": (
        "node 'c': output 'y': dimension 2 is 0 against a size of at least 1"
    ),
    "g (float[3,3] x) => (y) { [p] y = GlobalMaxPool(x) }": "node 'p': input 'x' has 2 dimensions against at least 3",
    "g (float[1,4,2] x) => (y) { [l] y = LRN<size=0>(x) }": "node 'l': attribute 'size' has 0 against at least 1",
    "g (float[1,1,3] x, float[1,1,3] w) => (y) { [c] y = ConvTranspose<strides=[2], output_shape=[9]>(x, w) }": (
        "node 'c': attribute 'output_shape' has 9 against at most 8 that the data can give"
    ),
    "g (float[1,1,3] x, float[1,1,3] w) => (y) { [c] y = ConvTranspose<output_shape=[1,1,3]>(x, w) }": (
        "node 'c': attribute 'output_shape' has 3 entries against 1"
    ),
    "g (float[1,1,3] x, float[1,1,3] w) => (y) { [c] y = ConvTranspose<strides=[2], output_padding=[2]>(x, w) }": (
        "node 'c': attribute 'output_padding' has 2 against less than 2"
    ),
    # products
    "g (float[1,3] x, float[4,2] w) => (y) { [e] y = Einsum<equation='ij,jk->ik'>(x, w) }": (
        "node 'e': label 'j' is 3 in 'x' against 4 in 'w'"
    ),
    "g (float[3,4] x) => (y) { [e] y = Einsum<equation='ii->i'>(x) }": (
        "node 'e': label 'i' is 3 in 'x' against 4 in 'x'"
    ),
    "g (float[2,3,4] x, float[3,4,5] w) => (y) { [e] y = Einsum<equation='...ij,...jk->...ik'>(x, w) }": (
        "node 'e': an ellipsis stands for 2 against 3 (they do not broadcast)"
    ),
    "g (uint8[2,4] a, float s, uint8 z, uint8[4,3] b, uint8[4] t) => (y) "
    "{ [q] y = QLinearMatMul(a, s, z, b, s, t, s, z) }": "node 'q': 't' is 4 against 1 or 3 of 'b'",
    "g (uint8[1,1,4,4] x, uint8[2,1,3,3] w, uint8 z, uint8[1,1,3,3] t) => (y) "
    "{ [q] y = ConvInteger(x, w, z, t) }": "node 'q': 't' is 1×1×3×3 against one or 2 elements",
    "g (uint8[1,2,4,4] x, uint8[2,2,3,3] w) => (y) { [q] y = ConvInteger<group=7>(x, w) }": (
        "node 'q': input 'x' has 2 channels against weights for 14 (groups 7)"
    ),
    "g (uint8[1,4,4,4] x, float s, uint8 z, uint8[3,2,3,3] w) => (y) "
    "{ [q] y = QLinearConv<group=2>(x, s, z, w, s, z, s, z) }": "node 'q': 3 filters against a multiple of 2 groups",
    "g (uint8[1,4,4,4] x, float s, uint8 z, uint8[2,4,3,3] w, uint8[2] t) => (y) "
    "{ [q] y = QLinearConv(x, s, z, w, s, z, s, t) }": "node 'q': 't' is 2 against one element",
    # normalisations
    f"{NORMALISED} {{ [n] y = GroupNormalization<num_groups=2>(x, s, t) }}": "node 'n': 't' is 3 against 2 groups",
    f"{NORMALISED} {{ [n] y = GroupNormalization<num_groups=3>(x, s, s) }}": (
        "node 'n': 4 channels against a multiple of 3 groups"
    ),
    f"{NORMALISED} {{ [n] y = InstanceNormalization(x, u, t) }}": "node 'n': 't' is 3 against 4 channels",
    # axes
    "g (float[2,3] x, int64[2] i) => (y) { [g] y = GatherElements(x, i) }": (
        "node 'g': 'i' has 1 dimensions (2) against 2"
    ),
    "g (float[2,3] x, int64[2] i) => (y) { [g] y = Gather<axis=2>(x, i) }": (
        "node 'g': axis 2 against 2 dimensions of 'x'"
    ),
    "g (float[1,6,2,3] x) => (y) { [d] y = DepthToSpace<blocksize=2>(x) }": (
        "node 'd': 6 channels against a multiple of 4 (blocks of 2×2)"
    ),
    "g (float[1,1,4,3] x) => (y) { [d] y = SpaceToDepth<blocksize=2>(x) }": (
        "node 'd': images of 4×3 against blocks of 2×2"
    ),
    "g (float[4] x) => (y, z) { [s] y, z = Split<num_outputs=1099511627776>(x) }": (
        "node 's': attribute 'num_outputs' is 1099511627776 against 2 results"
    ),
    "g (float[4] x) => (y, z) <int64[2] s = {1,2}> { [s] y, z = Split(x, s) }": (
        "node 's': lengths [1, 2] against 4 elements of axis 0"
    ),
    "g (float[2,3] x) => (y) <int64[1,1] a = {1}> { [r] y = ReduceSum(x, a) }": "node 'r': 'a' is 1×1 against a vector",
    "g (float[2,3] x) => (y) <int64[2] a = {1,-1}> { [r] y = ReduceMax(x, a) }": (
        "node 'r': 'a' (axes) is [1, -1] against 2 different ones of 2"
    ),
    "g (float[2,3,4,1] x) => (y) { [m] y = MeanVarianceNormalization<axes=[-1,2,2,0]>(x) }": (
        "node 'm': attribute 'axes' is [-1, 2, 2, 0] against 4 different ones of 4"
    ),
    "g (float[2,3,4,1] x) => (y) { [m] y = MeanVarianceNormalization<axes=[0,-2,2]>(x) }": (
        "node 'm': attribute 'axes' is [0, -2, 2] against 3 different ones of 4"
    ),
    "g (float[2,3,4,1] x) => (y) { [m] y = MeanVarianceNormalization<axes=[4]>(x) }": (
        "node 'm': axis 4 against 4 dimensions of 'x'"
    ),
    "g (float[2,3] x) => (y) { [m] y = MeanVarianceNormalization(x) }": "node 'm': axis 2 against 2 dimensions of 'x'",
    "g (float[2,3] x) => (y) { [m] y = MeanVarianceNormalization<axes: ints = []>(x) }": (
        "node 'm': attribute 'axes' is [] against at least one axis"
    ),
    "g (float x) => (y) { [m] y = MeanVarianceNormalization<axes=[0]>(x) }": (
        "node 'm': input 'x' has 0 dimensions against at least 1"
    ),
    "g (float[2,3] x) => (y) <int64[2] s = {1,0}, int64[2] e = {3,2}, int64[2] a = {-1,1}> "
    "{ [s] y = Slice(x, s, e, a) }": "node 's': 'a' (axes) is [-1, 1] against 2 different ones of 2",
    '<ir_version: 8, opset_import: ["": 9]> g (float[2,3] x) => (y) '
    "{ [s] y = Slice<axes=[0,-2], starts=[0,1], ends=[1,2]>(x) }": (
        "node 's': attribute 'axes' is [0, -2] against 2 different ones of 2"
    ),
    "g (float[2,3] x) => (y) <int64[4] p = {1,0,1,2}, int64[2] a = {-1,1}> { [p] y = Pad(x, p, , a) }": (
        "node 'p': 'a' (axes) is [-1, 1] against 2 different ones of 2"
    ),
    "g (float[2,3] x) => (y) <float[2] f = {2,3}> { [r] y = Resize<axes=[-1,1]>(x, , f) }": (
        "node 'r': attribute 'axes' is [-1, 1] against 2 different ones of 2"
    ),
    "g (float[2,3] x) => (y) <int64[2] s = {4,5}> { [c] y = CenterCropPad<axes=[-1,1]>(x, s) }": (
        "node 'c': attribute 'axes' is [-1, 1] against 2 different ones of 2"
    ),
    "g (float[2,3] x) => (y) <int64[2] a = {-1,3}> { [u] y = Unsqueeze(x, a) }": (
        "node 'u': 'a' (axes) is [-1, 3] against 2 different ones of 4"
    ),
    "g (float[2,3] x) => (y) <int64[1] a = {1}, int64[1] b = {-1}> "
    "{ c = Concat<axis=0>(a, b) [r] y = ReduceL2(x, c) }": (
        "node 'r': 'c' (axes) is [1, -1] against 2 different ones of 2"
    ),
    "g (float[2,3] x) => (y) <int64[3] p = {1,1,1}> { [p] y = Pad(x, p) }": "node 'p': 3 pads against 4 (2 axes)",
    "g (float[2,3] x) => (y) <int64[3] r = {1,1,1}> { [t] y = Tile(x, r) }": "node 't': 3 repeats against 2 (2 axes)",
    '<ir_version: 8, opset_import: ["": 11]> g (float[4] x) => (y) { [h] y = Hardmax(x) }': (
        "node 'h': axis 1 against 1 dimensions of 'x'"
    ),
    # element by element
    "g (float[3] x, float[2,3] s) => (y) { [p] y = PRelu(x, s) }": (
        "node 'p': 's' is 2×3 against 3 of 'x' (it does not broadcast to that)"
    ),
    "g (float[3] x, float[1] s) => (y) { [c] y = Clip(x, s) }": "node 'c': 's' is 1 against a scalar",
    "g (float[3] x, float[3] s) => (y) { [m] y = Mod<fmod=2>(x, s) }": "node 'm': attribute 'fmod' is 2 against 0 or 1",
    # operators that are defined by others
    '<ir_version: 11, opset_import: ["": 23]> g (float[1,2,12] q, float[1,1,2,12] k, float[1,2,12] v) => (y) '
    "{ [a] y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, v) }": (
        "node 'a': 'k' has 4 dimensions (1×1×2×12) against 3"
    ),
    '<ir_version: 11, opset_import: ["": 23]> g (float[1,2,4,8] q, float[1,2,4,8] k) => (y) '
    "{ [a] y = Attention<softcap=-1.0>(q, k, k) }": "node 'a': attribute 'softcap' has -1.0 against at least 0",
    '<ir_version: 11, opset_import: ["": 23]> g (float[1,3,8] x, float[9,2] c) => '
    '(y) { [r] y = RotaryEmbedding<num_heads=2>(x, c, c) }': (
        "node 'r': 'c' has 2 dimensions (9×2) against 3"
    ),
    '<ir_version: 11, opset_import: ["": 23]> g (float[1,3,8] x, float[1,3,2] c, int64[1,3] p) => '
    '(y) { [r] y = RotaryEmbedding<num_heads=2>(x, c, c, p) }': (
        "node 'r': 'c' has 3 dimensions (1×3×2) against 2"
    ),
    '<ir_version: 11, opset_import: ["": 23]> g (float[1,3,8] x, float[9,2] c, int64[3] p) => '
    '(y) { [r] y = RotaryEmbedding<num_heads=2>(x, c, c, p) }': (
        "node 'r': 'p' is 3 against 1×3"
    ),
    '<ir_version: 11, opset_import: ["": 23]> g (float[2,3,8] x, float[2,4,2] c) => '
    '(y) { [r] y = RotaryEmbedding<num_heads=2>(x, c, c) }': (
        "node 'r': 'c' is 2×4×2 against 2×3×2 or 1×3×2"
    ),
    '<ir_version: 11, opset_import: ["": 23]> g (float[2,3,8] x) => '
    '(y) <float[2,3,0] c = {}> { [r] y = RotaryEmbedding<num_heads=2>(x, c, c) }': (
        "node 'r': 'c' is 2×3×0 against at least one angle"
    ),
    '<ir_version: 11, opset_import: ["": 24]> g (float[2,4,3,8] q, float[2,2,5,8] k, int64[8] n) => '
    '(y) { [a] y = Attention(q, k, k, , , , n) }': (
        "node 'a': 'n' is 8 against 2 batches"
    ),
    '<ir_version: 11, opset_import: ["": 24]> g (float[2,4,3,8] q, float[2,2,5,8] k, float[2,4,3,6] m) => '
    '(y) { [a] y = Attention(q, k, k, m) }': (
        "node 'a': 'm' is 2×4×3×6 against 2×4×3×5 scores"
    ),
    '<ir_version: 11, opset_import: ["": 24]> g (float[2,4,3,8] q, float[2,2,5,8] k, float[2,2,1,4] p) => '
    '(y) { [a] y = Attention(q, k, k, , p, p) }': (
        "node 'a': 'p' is 2×2×1×4 against 2×2×1×8"
    ),
    '<ir_version: 11, opset_import: ["": 24]> g (float[2,4,3,8] q, float[2,2,5,8] k, float[2,2,6,8] v) => '
    '(y) { [a] y = Attention(q, k, v) }': (
        "node 'a': 'k' 2×2×5×8 and 'v' 2×2×6×8 against as many keys as values "
        "of as many heads, keys as wide as 'q' 2×4×3×8 (batches, heads, length, width)"
    ),
    "g (float[3,5] x, int64[2] t) => (y) { [n] y = NegativeLogLikelihoodLoss(x, t) }": (
        "node 'n': 't' is 2 against 3 of 'x'"
    ),
    # structure
    "g (float[2] x) => (y) <int64[2] h> { [a] h = Relu(x) [b] y = Neg(h) }": (
        "value 'h': declared as int64 against float32 that is computed"
    ),
    "g (float[2] x) => (float[2] y) { [a] y = Relu(b) [b] b = Relu(missing) }": (
        "node 'b': input 'missing' is no input, initializer or result of the model"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), CONTRADICTIONS.items(), ids=CONTRADICTIONS.values())
def test_contradiction_is_one_line(text: str, message: str, write_model: Callable[[str], Path]) -> None:
    path = write_model(text.replace("'", '"'))

    with pytest.raises(UserError) as caught:
        read_model(path)

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_squeeze_may_name_an_axis_twice(write_model: Callable[[str], Path]) -> None:
    """ONNX's inference and onnxruntime let it, and there is only one thing that it can mean."""
    path = write_model("g (float[2,3,1] x) => (y) <int64[2] a = {-1,2}> { y = Squeeze(x, a) }")

    assert read_model(path).program.outputs[0].shape == (2, 3)


def test_valid_padding_may_be_spelled_out_twice(write_model: Callable[[str], Path]) -> None:
    path = write_model('g (float[1,1,4] x) => (y) { y = MaxPool<auto_pad="VALID", kernel_shape=[2], pads=[0,0]>(x) }')

    assert read_model(path).program.outputs[0].shape == (1, 1, 3)
