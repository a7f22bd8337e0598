"""What joins the bars of a Gantt chart: streams, gangs, barriers, and the chain of waits that makes the makespan."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler import NO_PE, Schedule
from dfcompile.scheduler.activity import Stay
from dfcompile.visualization.gantt.layout import GUTTER, LEFT, TOP, WIDTH, Layout, escape, points, runs

Point: TypeAlias = tuple[float, float]

MOST_STREAMS = 400
MOST_WORDS = 40  # numbers beside streams
STREAM = "#334466"
CRITICAL = "#cc0022"
GANG = "#222222"
_MOST_BOUNDARIES = 250
_BOUNDARY_ROOM = 8  # pixels between lines through the whole chart; closer ones are short
_BOUNDARY_LABEL = 22  # pixels that the number of a block needs
_MOST_WIDTH = 2.2  # pixels, of the stream with the largest FIFO
_MOST_BEND = 16  # pixels
_FEW_OPACITY, _MANY_OPACITY = 0.5, 0.3
_ABOVE_BOTTOM = 2.5  # pixels: there a line crosses no name
_ARROW = (
    '<marker id="read" viewBox="0 0 6 6" refX="5.5" refY="3" markerUnits="userSpaceOnUse" markerWidth="6" '
    f'markerHeight="6" orient="auto"><path d="M0 0.8L5.5 3L0 5.2Z" fill="{STREAM}"/></marker>'
)


def drawn_streams(schedule: Schedule) -> list[int]:
    """Return the streamed edges that are drawn: those with the largest FIFOs if they are many."""
    edges = np.flatnonzero(schedule.streamed)
    return sorted(edges[np.argsort(-schedule.fifo_capacity[edges], kind="stable")][:MOST_STREAMS].tolist())


def streams(dag: CanonicalDag, schedule: Schedule, layout: Layout) -> Iterator[str]:
    """Yield a curve per stream, from where its first element is sent to where it is read, wider for larger FIFOs."""
    drawn = drawn_streams(schedule)
    if not drawn:
        return
    opacity = _FEW_OPACITY if len(drawn) <= MOST_WORDS else _MANY_OPACITY  # bars are to be seen behind them
    yield _ARROW
    yield f'<g class="streams" fill="none" stroke="{STREAM}" stroke-opacity="{opacity}">'
    for edge in drawn:
        words = int(schedule.fifo_capacity[edge])
        names = " → ".join(escape(dag.node_name(int(end[edge]))) for end in (dag.edge_source, dag.edge_target))
        title = f"{names}: {int(dag.edge_volume[edge]):,} elements, FIFO of {words:,}"
        width = min(0.7 + 0.15 * (words.bit_length() - 1), _MOST_WIDTH)
        yield (
            f'<path d="{_curve(*_ends(dag, schedule, layout, edge))}" stroke-width="{width:.2f}" '
            f'marker-end="url(#read)"><title>{title}</title></path>'
        )
    yield "</g>"
    if len(drawn) <= MOST_WORDS:
        # The elements that FIFOs of more than one hold, halfway between the bars.
        yield f'<g class="wide" font-size="9" fill="{STREAM}" stroke="white" stroke-width="2.5" paint-order="stroke">'
        for edge in drawn:
            if schedule.fifo_capacity[edge] > 1:
                begin, end = _ends(dag, schedule, layout, edge)
                x, y = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
                yield f'<text x="{x + 4:.2f}" y="{y + 3:.2f}">{int(schedule.fifo_capacity[edge]):,}</text>'
        yield "</g>"


def _ends(dag: CanonicalDag, schedule: Schedule, layout: Layout, edge: int) -> tuple[Point, Point]:
    """Return where the first element of a stream is sent, and where it is read."""
    producer, consumer = int(dag.edge_source[edge]), int(dag.edge_target[edge])
    begin = layout.x(int(schedule.first_out[producer])), layout.middle(int(schedule.pe[producer]))
    end = layout.x(int(schedule.start[consumer])), layout.middle(int(schedule.pe[consumer]))
    return begin, end


def _curve(begin: Point, end: Point) -> str:
    """Return a way from bar to bar; between bars that begin together it bends out of them."""
    bend = min(4 + abs(end[1] - begin[1]) / 24, _MOST_BEND)
    is_short = end[0] - begin[0] < _MOST_BEND
    first, second = (begin[0] - bend, end[0] - bend) if is_short else (begin[0] + bend, end[0] - bend)
    return (
        f"M{begin[0]:.2f} {begin[1]:.2f}C{first:.2f} {begin[1]:.2f} {second:.2f} {end[1]:.2f} {end[0]:.2f} {end[1]:.2f}"
    )


def gangs(schedule: Schedule, layout: Layout) -> Iterator[str]:
    """Yield the borders of gangs that overlap in time: around bars of one gang in neighbouring rows."""
    if schedule.barrier:
        return
    tasks = np.flatnonzero(schedule.pe != NO_PE)
    tasks = tasks[np.lexsort((schedule.start[tasks], schedule.pe[tasks], schedule.block[tasks]))]
    yield f'<g class="gangs" fill="none" stroke="{GANG}" stroke-width="0.9" pointer-events="none">'
    for together in runs(tasks.tolist(), partial(_are_neighbours, schedule)):
        yield from _border(schedule, layout, together)
    yield "</g>"


def _are_neighbours(schedule: Schedule, above: int, below: int) -> bool:
    """Whether two tasks are of one gang, in rows one below the other, and together for some time."""
    return bool(
        schedule.block[above] == schedule.block[below]
        and schedule.pe[above] + 1 == schedule.pe[below]
        and max(schedule.start[above], schedule.start[below]) < min(schedule.last_out[above], schedule.last_out[below])
    )


def _border(schedule: Schedule, layout: Layout, tasks: Sequence[int]) -> Iterator[str]:
    if len(tasks) < 2:
        return
    right, left = [], []
    for task in tasks:
        top = layout.row_top(int(schedule.pe[task]))
        bottom = top + layout.row_height
        begin, end = layout.x(int(schedule.start[task])), layout.x(int(schedule.last_out[task]))
        right += [(end, top), (end, bottom)]
        left += [(begin, top), (begin, bottom)]
    yield f'<path d="{points([*right, *reversed(left)])}Z"/>'


def boundaries(dag: CanonicalDag, schedule: Schedule, layout: Layout) -> Iterator[str]:
    """Yield a line where each spatial block begins, with its number where there is room."""
    if not schedule.barrier or schedule.blocks_count > _MOST_BOUNDARIES:
        return
    begins: dict[int, int] = {}
    task = dag.is_computational
    for block, start in zip(schedule.block[task].tolist(), schedule.start[task].tolist(), strict=True):
        begins[block] = min(start, begins.get(block, start))
    yield f'<text class="wide" x="{LEFT - GUTTER}" y="{TOP - 6}" text-anchor="end" fill="#555555">block</text>'
    last_line = last_label = -float(WIDTH)
    for block, begin in sorted(begins.items()):
        x, end = layout.x(begin), float(TOP)
        if x - last_line >= _BOUNDARY_ROOM:
            last_line, end = x, layout.bottom
        yield f'<path d="M{x:.2f} {TOP - 5}V{end:.2f}" stroke="#222222" stroke-width="0.7" stroke-dasharray="3 2"/>'
        if x - last_label >= _BOUNDARY_LABEL:
            last_label = x
            yield f'<text class="wide" x="{x + 2:.2f}" y="{TOP - 6}" fill="#555555">{block}</text>'


def critical_chain(schedule: Schedule, layout: Layout, path: Sequence[Stay]) -> Iterator[str]:
    """Yield the chain of waits from the first cycle to the last; stays below a pixel go to a longer neighbour."""
    stays = [stay for stay in reversed(path) if schedule.pe[stay.node] != NO_PE]
    if not stays:
        return
    corners: list[tuple[float, float]] = []
    for stay in _visible(stays, layout):
        y = layout.bar_top(int(schedule.pe[stay.node])) + layout.bar_height - _ABOVE_BOTTOM
        corners += [(layout.x(stay.begin), y), (layout.x(stay.end), y)]
    yield (
        f'<path class="critical" d="{points(corners)}" fill="none" stroke="{CRITICAL}" stroke-width="1.8" '
        'stroke-linejoin="round" pointer-events="none"/>'
    )


def _visible(stays: Sequence[Stay], layout: Layout) -> Iterator[Stay]:
    """Yield stays of a pixel or more; of shorter ones in a row the longest stands for a pixel."""
    begin, longest = stays[0].begin, stays[0]
    for stay in stays:
        if stay.end - stay.begin > longest.end - longest.begin or longest.end <= begin:
            longest = stay
        if layout.x(stay.end) - layout.x(begin) >= 1:
            yield Stay(longest.node, begin, stay.end)
            begin, longest = stay.end, stay
    if begin < stays[-1].end:
        yield Stay(longest.node, begin, stays[-1].end)
