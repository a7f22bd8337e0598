"""The drawing of a canonical DAG: a shape per family, an arrow with its volume per pair, memory told from streams."""

import re
from xml.etree import ElementTree as ET

from dfcompile.canonical_dag import CanonicalDag, parse_dag
from dfcompile.visualization.dag_drawing import dag_to_svg

SVG = "{http://www.w3.org/2000/svg}"
# Four tasks read x and w; their single results stream to one task, and through memory to y.
DAG = """dfcompile-dag/1 mv
buffer x
buffer w
elementwise broadcast origin=first
downsampler mv[0:4] origin=first
upsampler gather origin=second
buffer y<b>
edge x -> broadcast volume=6000
edge broadcast -> mv[0:4] volume=6000
edge w -> mv[0:4] volume=6000
edge mv[0:4] -> gather volume=1
edge gather -> y<b> volume=4
"""


def drawing(dag: CanonicalDag) -> ET.Element:
    return ET.fromstring(dag_to_svg(dag))


def shapes(svg: ET.Element) -> dict[str, ET.Element]:
    """The shapes by what the mouse says of them."""
    found = {}
    for path in svg.iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None:
            found[str(title.text)] = path
    return found


def test_every_family_is_a_shape_that_says_what_it_is() -> None:
    assert list(shapes(drawing(parse_dag(DAG)))) == [
        "x: buffer of x",
        "w: buffer of w",
        "broadcast: elementwise of first",
        "mv ×4: downsampler of first",
        "gather: upsampler of second",
        "y<b>: buffer of y<b>",
    ]


def test_operators_have_colours_and_buffers_have_none() -> None:
    fills = {text.partition(":")[0]: path.attrib["fill"] for text, path in shapes(drawing(parse_dag(DAG))).items()}

    assert fills["x"] == fills["w"] == fills["y<b>"] == "#ffffff"
    assert fills["broadcast"] == fills["mv ×4"] != fills["gather"]
    assert "#ffffff" not in (fills["broadcast"], fills["gather"])


def test_arrows_carry_volumes_and_those_through_memory_are_dashed() -> None:
    svg = drawing(parse_dag(DAG))
    arrows = [path for path in svg.iter(f"{SVG}path") if path.attrib["fill"] == "none"]
    labels = [str(text.text) for text in svg.iter(f"{SVG}text") if "stroke" in text.attrib]

    assert sorted(labels) == ["1 ×4", "4", "6,000", "6,000 ×4", "6,000 ×4"]
    assert sum("stroke-dasharray" in arrow.attrib for arrow in arrows) == 3
    assert len(arrows) == 5


def test_everything_is_inside_the_picture() -> None:
    svg = drawing(parse_dag(DAG))
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for path in shapes(svg).values():
        numbers = [float(number) for number in re.findall(r"[\d.]+", path.attrib["d"])]

        assert max(numbers) <= max(width, height)
    for text in svg.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height
