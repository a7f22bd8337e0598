"""Symbolic dimensions of inputs, and the shapes that fix them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions, read_model

ModelWriter = Callable[[str], Path]
ANY = "input 'image': dimension"
SYMBOLIC = "g (float[N,3,H] image, float[N,3,1] scale) => (float[N,3,H] y) { y = Mul(image, scale) }"


def test_one_shape_fixes_a_symbol_everywhere(write_model: ModelWriter) -> None:
    program = read_model(write_model(SYMBOLIC), ReadOptions(shapes={"image": (4, 3, 5)})).program

    assert [port.shape for port in program.inputs] == [(4, 3, 5), (4, 3, 1)]
    assert [port.shape for port in program.outputs] == [(4, 3, 5)]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            {},
            f"{ANY} 0 is symbolic ('N') against a number (give --dim N=1, or --shape image=1x3x1, say)",
        ),
        (
            {"scale": (4, 3, 1)},
            f"{ANY} 2 is symbolic ('H') against a number (give --dim H=1, or --shape image=4x3x1, say)",
        ),
        ({"imege": (4, 3, 5)}, "shape 'imege': no input of that name (did you mean 'image'?)"),
        ({"image": (4, 3)}, "input 'image': the given shape has 2 dimensions against 3 in the model"),
        ({"image": (4, 7, 5)}, "input 'image': dimension 1 is given as 7 against 3 in the model"),
        ({"image": (-1, 3, 5)}, "input 'image': dimension 0 is given as -1 against a size of at least 0"),
        ({"image": (4, 3, 5), "scale": (2, 3, 1)}, "input 'scale': 'N' is given as 2 against 4 elsewhere"),
    ],
)
def test_shapes_must_fit(shapes: Mapping[str, tuple[int, ...]], message: str, write_model: ModelWriter) -> None:
    path = write_model(SYMBOLIC)

    with pytest.raises(UserError) as caught:
        read_model(path, ReadOptions(shapes=shapes))

    assert str(caught.value) == message


def test_dimensions_are_fixed_by_their_names(write_model: ModelWriter) -> None:
    program = read_model(write_model(SYMBOLIC), ReadOptions(dims={"N": 4, "H": 5})).program

    assert [port.shape for port in program.inputs] == [(4, 3, 5), (4, 3, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ReadOptions(dims={"M": 4}), "dimension 'M': no input has a symbolic one of that name (known: H, N)"),
        (
            ReadOptions(dims={"N": 4}),
            f"{ANY} 2 is symbolic ('H') against a number (give --dim H=1, or --shape image=4x3x1, say)",
        ),
        (
            ReadOptions({"image": (4, 3, 5)}, {"N": 2}),
            "input 'image': 'N' is given as 4 against 2 elsewhere",
        ),
    ],
)
def test_dimensions_must_fit(options: ReadOptions, message: str, write_model: ModelWriter) -> None:
    with pytest.raises(UserError) as caught:
        read_model(write_model(SYMBOLIC), options)

    assert str(caught.value) == message


def test_shape_arithmetic_of_dynamic_exports_is_folded(write_model: ModelWriter) -> None:
    model = read_model(
        write_model(
            """g (float[N,3,4] x) => (float[a,b] y)
            <int64 zero = {0}, int64[1] rest = {-1}, int64[1] axes = {0}> {
              [shape] s = Shape(x)
              [pick] n = Gather<axis=0>(s, zero)
              [wrap] m = Unsqueeze(n, axes)
              [join] t = Concat<axis=0>(m, rest)
              [flat] y = Reshape(x, t)
            }"""
        ),
        ReadOptions(shapes={"x": (2, 3, 4)}),
    )

    coverage = {node.name: node.coverage.name for node in model.program.nodes}

    assert coverage == {"shape": "FOLDED", "pick": "FOLDED", "wrap": "FOLDED", "join": "FOLDED", "flat": "VIEW"}
    assert model.program.outputs[0].shape == (2, 12)
    assert model.program.parameters["t"].tolist() == [2, -1]
