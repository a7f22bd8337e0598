"""The Gantt chart: every task is a bar where and when it runs, and large graphs are refused."""

import re
from xml.etree import ElementTree as ET

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import chain, cholesky, fft, gaussian
from dfcompile.scheduler import ScheduleOptions, Timing, schedule
from dfcompile.visualization.gantt.chart import LARGEST_PICTURE, check_drawable, schedule_to_svg
from dfcompile.visualization.gantt.layout import LEFT, PALETTE, PLOT_WIDTH, ticks
from tests.unit.scheduler.streams import stream_graph

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
    colours = [group.attrib["fill"] for group in svg.iter(f"{SVG}g") if group.findall(f"{SVG}rect/{SVG}title")]

    assert len(set(colours)) == 4
    assert set(colours) <= set(PALETTE)
    assert {"potrf", "trsm", "syrk", "gemm"} <= set(texts(svg))


def test_title_says_what_the_picture_shows() -> None:
    dag = gaussian(8, 2048)
    made = schedule(dag, ScheduleOptions(5))
    svg = ET.fromstring(schedule_to_svg(dag, made))

    assert f"gaussian-8: {made.makespan_cycles:,} cycles on 5 processing elements" in texts(svg)
    words = int(made.fifo_capacity.sum())
    assert f"35 tasks in 7 spatial blocks, one after another (sb-rlx); {words} elements in FIFOs" in texts(svg)
    assert "utilization 99.9 %, waiting 0.0 %, without a task 0.1 %" in texts(svg)
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


def test_a_task_that_waits_is_pale_and_as_high_as_it_works() -> None:
    dag = stream_graph([("fast", "slow", 4), ("slow", "reader", 16)])
    svg = ET.fromstring(schedule_to_svg(dag, schedule(dag, ScheduleOptions(3, fifos=1))))
    found = bars(svg)
    shape = next(path for path in svg.iter(f"{SVG}path") if path.attrib["d"].endswith("Z"))

    assert [name for name, bar in found.items() if "fill-opacity" in bar.attrib] == ["fast"]
    assert "works 4 of " in str(found["fast"].findtext(f"{SVG}title"))
    assert {"works", "waits", "critical path"} <= set(texts(svg))
    top, bottom = (float(found["fast"].attrib[key]) for key in ("y", "height"))
    heights = [float(height) for height in re.findall(r"V([\d.]+)", shape.attrib["d"])]
    assert (min(heights), max(heights)) == (top, top + bottom)  # works for a while, then waits


def test_streams_are_drawn_with_the_words_of_their_fifos_those_with_the_largest_if_many() -> None:
    small, large = gaussian(5, 64, 1), fft(128, 16, 1)
    few = made_of(small, ScheduleOptions(16, fifos=7))
    many = made_of(large, ScheduleOptions(256))
    made = schedule(small, ScheduleOptions(16, fifos=7))
    titles = [str(title.text) for title in few.iter(f"{SVG}title") if "FIFO of" in str(title.text)]

    assert len(titles) == made.streamed.sum()
    edge = int(made.fifo_capacity.argmax())
    words, elements = int(made.fifo_capacity[edge]), int(small.edge_volume[edge])
    assert words > 1
    assert str(words) in texts(few)
    assert any(title.endswith(f": {elements} elements, FIFO of {words}") for title in titles)
    assert sum("FIFO of" in str(title.text) for title in many.iter(f"{SVG}title")) == 400
    assert any(text.startswith("stream (400 of ") for text in texts(many))


def test_names_are_read_above_streams_and_many_streams_are_paler() -> None:
    few, many = (made_of(dag, ScheduleOptions(16)) for dag in (cholesky(3, 64, 1), cholesky(8, 64, 1)))
    opacity = []
    for svg in (few, many):
        groups = {str(group.get("class")): place for place, group in enumerate(svg) if group.get("class")}
        streams, names = svg[groups["streams"]], svg[groups["wide names"]]
        opacity.append(float(str(streams.get("stroke-opacity"))))

        assert groups["streams"] < groups["wide names"]
        assert names.get("paint-order") == "stroke"  # a border around letters hides what crosses them
        assert [text.text for text in names if text.text == "potrf[0]"] == ["potrf[0]"]
    assert opacity[1] < opacity[0]


def test_gangs_have_borders_where_blocks_overlap_in_time() -> None:
    dag = cholesky(5, 64, 1)
    apart, overlapping = (made_of(dag, ScheduleOptions(8, barrier=barrier)) for barrier in (True, False))
    borders = [group for group in overlapping.iter(f"{SVG}g") if group.attrib.get("class") == "gangs"]

    assert len(borders) == 1
    assert len(list(borders[0])) > 0
    assert not [group for group in apart.iter(f"{SVG}g") if group.attrib.get("class") == "gangs"]
    assert "gang in neighbouring rows" in texts(overlapping)


@pytest.mark.parametrize("barrier", [True, False])
def test_critical_path_leads_through_the_whole_chart(barrier: bool) -> None:
    dag = gaussian(8, 64, 1)
    svg = made_of(dag, ScheduleOptions(5, barrier=barrier))
    path = next(path.attrib["d"] for path in svg.iter(f"{SVG}path") if path.attrib.get("class") == "critical")
    across = [float(x) for x in re.findall(r"[ML]([\d.]+) ", path)]

    assert (across[0], across[-1]) == (LEFT, LEFT + PLOT_WIDTH)
    assert across == sorted(across)


def test_steady_times_say_that_waits_are_not_known() -> None:
    svg = made_of(chain(4, 32), ScheduleOptions(2, timing=Timing.STEADY))

    assert any("who waits when is not known" in text for text in texts(svg))
    assert not {"works", "waits", "critical path"} & set(texts(svg))


def test_bars_below_a_pixel_are_one_and_the_file_stays_small() -> None:
    dag = chain(2_000, 16, 1)
    drawn = schedule_to_svg(dag, schedule(dag, ScheduleOptions(1)))
    found = bars(ET.fromstring(drawn))

    assert len(drawn) < 400_000
    assert len(found) < 2_000
    assert any(re.match(r"\d+ tasks, task\[\d+\] to task\[\d+\]", name) for name in found)


def made_of(dag: CanonicalDag, options: ScheduleOptions) -> ET.Element:
    return ET.fromstring(schedule_to_svg(dag, schedule(dag, options)))
