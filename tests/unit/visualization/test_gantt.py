"""The Gantt chart: every task is a bar where and when it runs, and large graphs are refused."""

from xml.etree import ElementTree as ET

import pytest

from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import chain, cholesky, gaussian
from dfcompile.scheduler import ScheduleOptions, schedule
from dfcompile.visualization.gantt import LARGEST_PICTURE, PALETTE, check_drawable, schedule_to_svg, ticks

SVG = "{http://www.w3.org/2000/svg}"


def bars(svg: ET.Element) -> dict[str, ET.Element]:
    """The bars by the name of their task."""
    found = {}
    for bar in svg.iter(f"{SVG}rect"):
        title = bar.find(f"{SVG}title")
        if title is not None:
            found[str(title.text).partition(":")[0]] = bar
    return found


def texts(svg: ET.Element) -> list[str]:
    return [str(text.text) for text in svg.iter(f"{SVG}text")]


@pytest.mark.parametrize("barrier", [True, False])
def test_every_task_is_a_bar_inside_the_picture(barrier: bool) -> None:
    dag = gaussian(8, 64, 1)
    svg = ET.fromstring(schedule_to_svg(dag, schedule(dag, ScheduleOptions(5, barrier=barrier))))
    found = bars(svg)

    assert len(found) == dag.tasks_count
    for bar in found.values():
        x, y, width, height = (float(bar.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= float(svg.attrib["width"])
        assert 0 <= y <= y + height <= float(svg.attrib["height"])


def test_later_tasks_stand_further_right_and_other_elements_in_other_rows() -> None:
    dag = chain(4, 100)
    found = bars(ET.fromstring(schedule_to_svg(dag, schedule(dag, ScheduleOptions(2)))))
    places = [
        (float(found[f"task[{node}]"].attrib["x"]), float(found[f"task[{node}]"].attrib["y"])) for node in range(4)
    ]

    assert places[0][0] < places[1][0] < places[2][0] < places[3][0]
    assert places[0][1] == places[2][1] != places[1][1] == places[3][1]


def test_operators_have_colours_of_their_own_and_stand_in_the_legend() -> None:
    dag = cholesky(4, 64, 1)
    svg = ET.fromstring(schedule_to_svg(dag, schedule(dag, ScheduleOptions(8))))
    colours = [group.attrib["fill"] for group in svg.iter(f"{SVG}g")]

    assert len(set(colours)) == 4
    assert set(colours) <= set(PALETTE)
    assert {"potrf", "trsm", "syrk", "gemm"} <= set(texts(svg))


def test_title_says_what_the_picture_shows() -> None:
    dag = gaussian(8, 2048)
    made = schedule(dag, ScheduleOptions(5))
    svg = ET.fromstring(schedule_to_svg(dag, made))

    assert f"gaussian-8: {made.makespan_cycles:,} cycles on 5 processing elements" in texts(svg)
    assert f"35 tasks in {made.blocks_count} spatial blocks, one after another (sb-rlx)" in texts(svg)
    assert {"PE 0", "PE 4", "10,000", "cycles", "block"} <= set(texts(svg))


def test_names_of_users_do_not_break_the_picture() -> None:
    dag = chain(2, 8)
    renamed = dag.__class__(**{**{name: getattr(dag, name) for name in dag.__dataclass_fields__}, "name": "<a & b>"})

    assert (
        "<a & b>: 9 cycles" in texts(ET.fromstring(schedule_to_svg(renamed, schedule(renamed, ScheduleOptions(2)))))[0]
    )


@pytest.mark.parametrize("cycles", [0, 1, 9, 10, 11, 99, 101, 52_710, 10**6, 2 * 10**9 + 1])
def test_marks_of_the_axis_are_round_and_few(cycles: int) -> None:
    found = ticks(cycles)

    assert found[0] == 0
    assert found[-1] <= cycles
    assert len(found) <= 11
    assert cycles < 10 or len(found) >= 3
    assert all(str(place).rstrip("0") in ("", *map(str, range(1, 100))) for place in found)


def test_picture_of_too_many_tasks_is_refused() -> None:
    check_drawable(chain(LARGEST_PICTURE))

    with pytest.raises(UserError, match=r"found 20,001 tasks against at most 20,000 in a picture \(use --trace\)"):
        check_drawable(chain(LARGEST_PICTURE + 1))
