"""Conv by Winograd's minimal filtering and by Fourier transforms."""

import re
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.expansions.tiled_conv import TiledConvolution, cook_toom, fourier
from dfcompile.lowering.windows import Windows
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Node, check_node, random
from tests.onnx_text import model_from_text, program_from_model
from tests.unit.lowering.expansions.test_convolution import reference

TABLE = registered_expansions()
NAMES = ("winograd", "winograd4", "fft")
# Relative to the largest value: the points at which winograd4 evaluates polynomials cost it a digit.
WINOGRAD = [Choice("Conv", "winograd")]
LIMITS = {"winograd": 5e-6, "winograd4": 5e-5, "fft": 5e-6}


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[str, dict[str, np.ndarray]]:
    """A Conv of stride and dilation 1 of one to three spatial dimensions, of which one has several taps."""
    rank = draw(st.integers(1, 3))
    kernel = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank).filter(lambda taps: max(taps) > 1))
    pads = draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank))
    group, rows, channels, batch = (draw(st.integers(1, most)) for most in (3, 3, 3, 2))
    sizes = [taps + draw(st.integers(0, 5 if rank < 3 else 2)) for taps in kernel]
    counts = [size + pads[axis] + pads[rank + axis] - kernel[axis] + 1 for axis, size in enumerate(sizes)]
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parameters = {"w": generator.uniform(-1, 1, (group * rows, channels, *kernel)).astype(np.float32)}
    if draw(st.booleans()):
        parameters["b"] = generator.uniform(-1, 1, group * rows).astype(np.float32)
    x, y = ([batch, *shape] for shape in ((group * channels, *sizes), (group * rows, *counts)))
    conv = f"Conv<group={group}, pads={pads}>({', '.join(['x', *parameters])})"
    return f"g (float{x} x) => (float{y} y) {{ y = {conv} }}", parameters


@pytest.mark.parametrize("name", NAMES)
@given(case=convolutions(), seed=st.integers(0, 2**32 - 1))
@examples(20)
def test_tiles_make_the_convolution_of_onnx(name: str, case: tuple[str, dict[str, np.ndarray]], seed: int) -> None:
    text, parameters = case
    model = model_from_text(text, **parameters)
    program = program_from_model(model)
    library = lower_to_canonical(program, TABLE, [Choice("Conv", name)])
    maps = lower_to_maps(library, TABLE, [Choice("MatMul", "lmv")])
    (port,) = program.inputs
    x = np.random.default_rng(seed).uniform(-1, 1, port.shape).astype(np.float32)
    expected = reference(model, x)
    error = interpret(maps, {port.name: x})["y"].astype(np.float64) - expected

    assert np.max(np.abs(error)) < LIMITS[name] * max(1.0, np.max(np.abs(expected)))
    extract(maps.sdfg)  # verifies that every task is canonical


def dag_of(name: str, size: int, filters: tuple[int, ...], pads: int = 0, matmul: str = "ip") -> CanonicalDag:
    """Lower the convolution of one square image."""
    rows, channels, taps, _ = filters
    count = size + 2 * pads - taps + 1
    text = (
        f"g (float[1,{channels},{size},{size}] x) => (float[1,{rows},{count},{count}] y) "
        f"{{ y = Conv<pads={[pads] * 4}>(x, w) }}"
    )
    program = program_from_model(model_from_text(text, w=np.ones(filters, np.float32)))
    choices = [Choice("Conv", name), Choice("MatMul", matmul)]
    return extract(lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices).sdfg)


def work_by_step(dag: CanonicalDag) -> dict[str, int]:
    """Return the work of the tasks of every step, such as ``data0`` and ``matmul.ip``."""
    found: dict[str, int] = {}
    for node, work in enumerate(dag.work.tolist()):
        step = re.sub(r"^Conv_0\.|\[.*$", "", dag.node_name(node))
        if work:
            found[step] = found.get(step, 0) + work
    return found


@pytest.mark.parametrize(("name", "outputs"), [("winograd", 2), ("winograd4", 4)])
def test_work_of_winograd_is_that_of_its_formulas(name: str, outputs: int) -> None:
    """F(m x m, 3 x 3) of 5 channels and 7 filters on 12 x 12 results, padded by 1."""
    channels, rows, size, taps = 5, 7, 12, 3
    products, tiles = outputs + taps - 1, size // outputs
    dag = dag_of(name, size, (rows, channels, taps, taps), pads=1)

    assert work_by_step(dag) == {
        "pad.border0": channels * 2 * (size + 2),
        "pad.border1": channels * 2 * size,
        "pad": channels * size**2,
        "data0.filters": channels * products * tiles * (size + 2) * products,
        "data1.filters": channels * products**2 * tiles**2 * products,
        "filters0.filters": rows * channels * products * taps * taps,
        "filters1.filters": rows * channels * products**2 * taps,
        "matmul.ip": rows * channels * products**2 * tiles**2,
        "matmul.gather": rows * products**2 * tiles**2,
        "result0.filters": rows * outputs * products * tiles**2 * products,
        "result1.filters": rows * outputs**2 * tiles**2 * products,
        "image": rows * size**2,
    }


def test_work_by_which_tiles_are_chosen_is_that_of_the_tasks() -> None:
    """All but copies: of 5 x 5 tiles for windows of 3, or of what `fft` takes."""
    windows = Windows((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (9, 9))
    steps = work_by_step(dag_of("winograd", 9, (4, 3, 3, 3), pads=1))
    copies = ("pad", *(step for step in steps if step.startswith("pad.border")), "image", "crop", "matmul.gather")
    tiled = TiledConvolution(windows, (cook_toom(2, 3), cook_toom(2, 3)), batch=1, group=1, rows=4, channels=3)

    assert tiled.work == sum(work for step, work in steps.items() if step not in copies)


def test_fft_takes_the_tiles_of_least_work() -> None:
    windows = Windows((5, 5), (1, 1), (1, 1), (2, 2), (2, 2), (27, 27))
    works = {
        tiles: TiledConvolution(windows, tuple(fourier(tile, 5) for tile in tiles), 1, 1, rows=16, channels=16).work
        for tiles in product((8, 16, 32), repeat=2)
    }
    least = min(works, key=lambda each: works[each])
    steps = work_by_step(dag_of("fft", 27, (16, 16, 5, 5), pads=2))

    assert steps["filters0.filters"] == 16 * 16 * fourier(least[0], 5).products * 5 * 5
    assert steps["filters1.filters"] == 16 * 16 * prod(fourier(tile, 5).products for tile in least) * 5


@pytest.mark.parametrize(("name", "size", "filters", "part"), [
    ("winograd", 28, (32, 32, 3, 3), 0.62),
    ("winograd4", 28, (32, 32, 3, 3), 0.43),
    ("fft", 27, (48, 48, 5, 5), 0.55),
    ("fft", 28, (16, 16, 7, 7), 0.6),
])  # fmt: skip
def test_less_work_than_directly(name: str, size: int, filters: tuple[int, ...], part: float) -> None:
    pads = filters[2] // 2
    ours, direct = (int(dag_of(each, size, filters, pads).work.sum()) for each in (name, "direct"))

    assert part - 0.1 < ours / direct < part


@pytest.mark.parametrize(("name", "window", "attributes", "reason"), [
    ("winograd", (1, 1), {}, "a window of one element against one of several"),
    ("winograd", (3, 6), {}, "a window of 6 elements along an axis against at most 5"),
    ("winograd4", (4, 3), {}, "a window of 4 elements along an axis against at most 3"),
    ("winograd", (3, 3), {"strides": [1, 2]}, "stride 2 and dilation 1 against 1 and 1"),
    ("winograd4", (3, 3), {"dilations": [2, 1]}, "stride 1 and dilation 2 against 1 and 1"),
])  # fmt: skip
def test_windows_that_winograd_does_not_take(
    name: str, window: tuple[int, ...], attributes: dict[str, list[int]], reason: str
) -> None:
    node = Node("Conv", [random((1, 2, 12, 12)), random((3, 2, *window))], attributes=attributes)

    with pytest.raises(UnsupportedOpError, match=re.escape(f"operator 'op': Conv={name} does not fit: {reason}")):
        lower_to_canonical(program_from_model(node.model()), TABLE, [Choice("Conv", name)])


def test_stride_matters_only_where_a_window_has_several_elements() -> None:
    attributes = {"strides": [1, 3], "pads": [1, 0, 1, 0]}

    check_node(Node("Conv", [random((1, 2, 5, 9)), random((3, 2, 3, 1))], [1], attributes), choices=WINOGRAD)


@pytest.mark.parametrize("attributes", [
    {"strides": [2, 3], "dilations": [2, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 1]},
    {"auto_pad": "SAME_LOWER"},
    {"dilations": [3, 2], "pads": [2, 1, 0, 3]},
])  # fmt: skip
def test_fft_takes_every_window(attributes: dict[str, list[int] | str]) -> None:
    node = Node("Conv", [random((2, 4, 11, 10)), random((6, 2, 3, 4))], [1], {"group": 2, **attributes})

    check_node(node, choices=[Choice("Conv", "fft")])


def test_one_channel_needs_no_matrix_product() -> None:
    """Depthwise: nothing is summed over channels."""
    steps = work_by_step(dag_of("winograd", 8, (4, 1, 3, 3)))

    assert steps["products"] == 4 * 16 * 9
    assert not any("matmul" in step for step in steps)


@pytest.mark.parametrize(("dtype", "limit"), [("float16", 1e-2), ("float64", 1e-12)])
def test_other_element_types(dtype: str, limit: float) -> None:
    """Half precision is transformed in single precision, double precision in double."""
    operands = [random((1, 2, 6, 7), dtype), random((3, 2, 3, 3), dtype), random((3,), dtype)]
    node = Node("Conv", operands, [1, 2], {"pads": [1, 1, 1, 1]})

    check_node(node, choices=WINOGRAD, rtol=limit, atol=limit)


def test_filters_may_be_computed_by_the_model() -> None:
    check_node(Node("Conv", [random((1, 2, 6, 6)), random((3, 2, 3, 3)), random((3,))]), choices=WINOGRAD)
