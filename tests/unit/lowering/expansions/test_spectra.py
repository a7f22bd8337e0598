"""Fourier transforms, the windows that they are taken of, and determinants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import Choice
from dfcompile.lowering.expansions.dft import stages
from tests.examples import examples
from tests.onnx_nodes import Array, Attribute, Node, check_node, lowered, random, scopes

EXPANSIONS = st.sampled_from(["matmul", "fft"])
LENGTHS = st.none() | st.integers(1, 12)


@examples(50)
@given(
    EXPANSIONS,
    st.integers(1, 2),
    st.integers(1, 3),
    LENGTHS,
    st.sampled_from(["", "inverse", "onesided"]),
    st.booleans(),
)
def test_transform(name: str, parts: int, axis: int, length: int | None, kind: str, counts_back: bool) -> None:
    shape = [2, 3, 4, 5, 1 if kind == "onesided" else parts]
    shape[axis] = 9
    attributes: dict[str, Attribute] = {kind: 1} if kind else {}
    operands: list[Array | None] = [random(shape), None if length is None else np.array(length)]
    operands.append(np.array(axis - 5 if counts_back else axis))
    node = Node("DFT", operands, [1, 2], attributes, opset=20)

    check_node(node, choices=[Choice("DFT", name)], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_fast_transform_of_one_number_is_the_number(parts: int) -> None:
    check_node(Node("DFT", [random((5, 1, parts))], opset=20), choices=[Choice("DFT", "fft")])


@pytest.mark.parametrize("length", [None, 7, 9])
def test_inverse_of_half_a_spectrum_is_real(length: int | None) -> None:
    operands = [random((2, 5, 2)), None if length is None else np.array(length)]
    node = Node("DFT", operands, [1], {"inverse": 1, "onesided": 1}, opset=20)
    spectrum = np.asarray(operands[0])[..., 0] + 1j * np.asarray(operands[0])[..., 1]
    expected = np.fft.irfft(spectrum, n=length, axis=1)[..., None].astype(np.float32)

    check_node(node, expected)
    with pytest.raises(UnsupportedOpError, match="'inverse' and 'onesided' are 1 against one of them"):
        lowered(node.model(), [Choice("DFT", "fft")])


@pytest.mark.parametrize(("opset", "axis"), [(17, None), (18, None), (17, 2), (19, 1)])
def test_transform_before_operator_set_20(opset: int, axis: int | None) -> None:
    """The default of the axis was 1; since then it is the one before the last."""
    attributes: dict[str, Attribute] = {} if axis is None else {"axis": axis}
    x = random((2, 4, 4, 2))
    node = Node("DFT", [x], attributes=attributes, opset=opset)
    expected = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=axis or 1)

    check_node(node, np.stack([expected.real, expected.imag], axis=-1).astype(np.float32))


def test_default_axis_is_the_one_before_the_last() -> None:
    check_node(Node("DFT", [random((2, 4, 4, 2))], opset=20))


def test_a_fast_transform_does_less_work() -> None:
    node = Node("DFT", [random((1, 64, 2))], opset=20)
    dense, fast = (extract(lowered(node.model(), [Choice("DFT", name)]).sdfg) for name in ("matmul", "fft"))

    # Four products per number and result, against four per stage, result and number of the stage.
    assert dense.work.sum() >= 64 * 64 * 4
    assert fast.tasks_count == 2 * 6
    assert fast.work.sum() == 6 * (64 * 2 + 64 * 2 * 2 * 2)


def test_stages_of_any_length() -> None:
    for length in range(1, 200):
        found = stages(length)
        assert np.prod([stage.radix for stage in found], initial=1) == length
        assert all(stage.radix * stage.blocks * stage.stride == length for stage in found)


def test_a_long_prime_has_no_fast_transform() -> None:
    node = Node("DFT", [random((1, 67, 1))], opset=20)
    with pytest.raises(UnsupportedOpError, match="length of 67 has the prime factor 67 against at most 64"):
        lowered(node.model(), [Choice("DFT", "fft")])


@examples(25)
@given(EXPANSIONS, st.integers(2, 8), st.integers(1, 4), st.integers(0, 7), st.booleans(), st.integers(0, 1))
def test_short_transforms(name: str, length: int, step: int, more: int, windowed: bool, onesided: int) -> None:
    signal = random((2, length + more, 1 if onesided else 2))
    operands: list[Array | None] = [signal, np.array(step), random((length,)) if windowed else None, np.array(length)]
    node = Node("STFT", operands, [1, 3], {"onesided": onesided}, opset=17)

    check_node(node, choices=[Choice("STFT", name)], rtol=1e-4, atol=1e-4)


def test_frames_are_copied_once_and_multiplied() -> None:
    node = Node("STFT", [random((1, 20, 1)), np.array(4), random((8,))], [1, 2], {"onesided": 1}, opset=17)

    assert scopes(lowered(node.model()))[:2] == ["op.frames", "op.window"]


def test_both_sides_of_a_spectrum_where_nothing_is_said_are_one() -> None:
    """ONNX's inference takes both."""
    model = Node("STFT", [random((1, 20, 1)), np.array(4), random((8,))], [1], {"onesided": 1}, opset=17).model()
    del model.graph.node[0].attribute[:]

    assert lowered(model).outputs[0].shape == (1, 4, 5, 2)


@pytest.mark.parametrize("op_type", ["BlackmanWindow", "HammingWindow", "HannWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("size", [2, 9])
def test_windows(op_type: str, periodic: int, size: int) -> None:
    check_node(Node(op_type, [np.array(size)], [0], {"periodic": periodic}, opset=17))


def test_a_symmetric_window_of_one_number_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="a symmetric window of 1 against at least 2"):
        lowered(Node("HannWindow", [np.array(1)], [0], {"periodic": 0}, opset=17).model())


def test_mel_weights() -> None:
    operands = [np.array(8), np.array(64), np.array(8000), np.float32(20), np.float32(3900)]
    check_node(Node("MelWeightMatrix", [np.asarray(each) for each in operands], [0, 1, 2, 3, 4], opset=17))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (3, 6, 6), (2, 1, 5, 5)])
def test_determinants(shape: tuple[int, ...]) -> None:
    x = random(shape)
    check_node(Node("Det", [x]), np.asarray(np.linalg.det(x.astype(np.float64)), np.float32), rtol=1e-4)


def test_determinants_without_a_pivot_are_zero() -> None:
    x = np.array([[[0, 0], [0, 3]], [[0, 2], [3, 0]], [[1, 2], [2, 4]], [[0, 1], [0, 5]]], np.float32)

    check_node(Node("Det", [x]), np.array([0, -6, 0, 0], np.float32))
