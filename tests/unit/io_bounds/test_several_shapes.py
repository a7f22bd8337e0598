"""Several shapes in one report and one picture: each as it is alone; all tilings lie on or above their curve."""

from collections import Counter
from xml.etree import ElementTree as ET

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.api.bound_model import effectual_buffers
from dfcompile.api.bound_traffic import bounds_of
from dfcompile.io_bounds.curve import front
from dfcompile.options import read_options
from dfcompile.options.commands import BoundsOptions
from dfcompile.visualization.ski_slopes import effectual_to_svg, slopes_to_svg
from tests.examples import examples


def test_several_shapes_are_each_as_alone() -> None:
    asked = {"gemm": ("8,6,4", "12,6,4"), "conv": ("4,4,6x6,3x3",), "chain": ("8,4,6,4",)}
    buffers = {"buffers": (256, 1024)}
    together = bounds_of(read_options(BoundsOptions, {**asked, **buffers}))
    shapes = [(name, text) for name, texts in asked.items() for text in texts]
    alone = [bounds_of(read_options(BoundsOptions, {name: text, **buffers})) for name, text in shapes]

    assert together.operators == tuple(row for each in alone for row in each.operators)
    assert [row.tiling_bytes for row in together.fusions] == [row.tiling_bytes for one in alone for row in one.fusions]
    assert [slope.operations for slope in together.slopes] == [one.operations for each in alone for one in each.slopes]
    assert len({slope.name for slope in together.slopes}) == len(together.slopes)


@examples(20)
@given(
    extents=st.tuples(*[st.integers(1, 24)] * 3),
    heads=st.integers(1, 3),
    tiles=st.sampled_from(["integer", "divisors"]),
)
def test_the_curve_is_the_lower_edge_of_the_cloud(extents: tuple[int, int, int], heads: int, tiles: str) -> None:
    asked = BoundsOptions(bmm=(",".join(map(str, (heads, *extents))),), tiles=tiles, word=2)
    (slope,) = bounds_of(asked, cloud=True).slopes
    edge = front(*slope.cloud)

    assert (edge.sizes.tolist(), edge.traffic.tolist()) == (slope.curve.sizes.tolist(), slope.curve.traffic.tolist())


def test_a_picture_has_every_curve_its_dots_and_operations_per_byte() -> None:
    found = bounds_of(BoundsOptions(gemm=("64,64,64", "32,64,64"), conv=("4,4,6x6,3x3",)), cloud=True)
    moved = slopes_to_svg(found.subject, found.slopes)
    intense = slopes_to_svg(found.subject, found.slopes, is_intensity=True)

    for picture, axis in ((moved, "bytes moved"), (intense, "operations per byte")):
        root = ET.fromstring(picture)
        kinds = Counter(each.tag.rpartition("}")[2] for each in root)
        assert (kinds["polyline"], kinds["path"]) == (6, 2)  # curves and their legends; a convolution has no dots
        assert axis in picture
    ends = [float(each.attrib["cy"]) for each in ET.fromstring(intense) if each.tag.endswith("circle")][::2]
    intensities = [slope.operations / slope.curve.least_traffic for slope in found.slopes]
    assert np.argsort(ends).tolist() == np.argsort(intensities)[::-1].tolist()  # the more, the higher


def test_a_picture_says_how_large_a_buffer_still_saves_traffic_beside_all_operands() -> None:
    found = bounds_of(BoundsOptions(gemm=("64,64,64", "512,4,8"), attention=("2,16,16,4",), word=2))
    buffers = {one.name: one for one in effectual_buffers(found)}
    product, flat = buffers["gemm 64,64,64"], buffers["gemm 512,4,8"]

    # All of the smallest operand, and a row of each of the others [huang24].
    assert product.effectual_bytes == 2 * (64 * 64 + 64 + 64)
    assert flat.effectual_bytes == 2 * (4 * 8 + 4 + 8)
    assert product.operand_bytes == 2 * 3 * 64 * 64
    assert sum(name.endswith((", unfused", ", flash")) for name in buffers) == 2

    picture = ET.fromstring(effectual_to_svg(found.subject, list(buffers.values())))
    widths = [float(each.attrib["width"]) for each in picture if "width" in each.attrib][1:]  # behind the background
    assert len(widths) == len(buffers)
    assert np.allclose(
        np.array(widths) / widths[0], [one.percent / product.percent for one in buffers.values()], atol=1e-3
    )
    assert "gemm 64,64,64: 34.4 % (8.25 KiB of 24 KiB)" in [each.text for each in picture]
