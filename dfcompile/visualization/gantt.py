"""The Gantt chart of a schedule as an SVG picture: a row per processing element, bars coloured by operator."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax import saxutils

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.host.printable import printable
from dfcompile.scheduler import NO_PE, Schedule

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

LARGEST_PICTURE = 20_000  # tasks: more bars than that are neither readable nor quick to draw

# Neighbours in this list differ in hue; all are light enough for dark letters. Used in turn.
PALETTE = (
    "#77aadd", "#ee9955", "#77bb66", "#ee7788", "#99ddee", "#bb9966", "#bb88cc", "#eedd77", "#55aaaa", "#ffaabb",
    "#aaaaaa", "#bbcc44",
)  # fmt: skip

WIDTH = 1280
LEFT, RIGHT, TOP = 64, 24, 74
PLOT_WIDTH = WIDTH - LEFT - RIGHT
PLOT_HEIGHT = 720  # that many rows share, if they are many
ROW_HEIGHTS = (5.0, 24.0)  # pixels, least and most
LABELLED_ROW = 11.0  # pixels that a name beside a row needs
LABELLED_BAR = 14.0  # pixels that a name in a bar needs
CHARACTER = 6.2  # pixels, of small letters
MOST_TICKS = 10
MOST_BOUNDARIES = 250
BOUNDARY_ROOM = 8  # pixels between lines through the whole chart; closer ones are short
BOUNDARY_LABEL = 22  # pixels that the number of a block needs
LEGEND_COLUMN = 200
MOST_LEGEND = 30
LEGEND_LETTERS = 28
LINE = 18


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where things are, in pixels."""

    cycles: int
    rows: int
    row_height: float

    @property
    def bottom(self) -> float:
        return TOP + self.rows * self.row_height

    def x(self, cycle: int) -> float:
        return LEFT + cycle / max(self.cycles, 1) * PLOT_WIDTH

    def y(self, pe: int) -> float:
        return TOP + pe * self.row_height


def check_drawable(dag: CanonicalDag) -> None:
    """Check that a graph is not too large for a picture.

    Raises:
        UserError: it is.
    """
    if dag.tasks_count > LARGEST_PICTURE:
        raise UserError(
            f"--gantt: found {dag.tasks_count:,} tasks against at most {LARGEST_PICTURE:,} in a picture (use --trace)"
        )


def schedule_to_svg(dag: CanonicalDag, schedule: Schedule) -> str:
    """Return the Gantt chart of a schedule.

    Raises:
        UserError: there are too many tasks for a picture.
    """
    check_drawable(dag)
    rows = int(schedule.pe.max(initial=0)) + 1
    row_height = min(max(PLOT_HEIGHT / rows, ROW_HEIGHTS[0]), ROW_HEIGHTS[1])
    layout = _Layout(schedule.makespan_cycles, rows, row_height)
    operators = _operators(dag)
    legend = list(_legend(operators, layout.bottom + 62))
    height = layout.bottom + 62 + LINE * -(-min(len(operators), MOST_LEGEND) // _legend_columns())
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="11">'
    )
    parts = [
        opening,
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
        *_title(dag, schedule, rows),
        *_grid(layout),
        *_bars(dag, schedule, layout, operators),
        *_boundaries(dag, schedule, layout),
        *legend,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _operators(dag: CanonicalDag) -> tuple[str, ...]:
    """Return the origins of tasks, in the order of the graph."""
    task = dag.is_computational
    return tuple(dict.fromkeys(dag.scopes[scope].origin for scope in dag.node_scope[task].tolist()))


def escape(text: str) -> str:
    r"""Return a text as XML has it; most control characters have no place there, not even escaped.

    >>> escape("a < b\x00")
    'a &lt; b�'
    """
    return saxutils.escape(printable(_NO_XML.sub("\ufffd", text)))


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _title(dag: CanonicalDag, schedule: Schedule, rows: int) -> Iterator[str]:
    blocks = f"{schedule.blocks_count:,} spatial block{'' if schedule.blocks_count == 1 else 's'}"
    used = "" if rows == schedule.pes else f" ({rows} used)"
    yield (
        f'<text x="{LEFT}" y="26" font-size="16" font-weight="bold">{escape(dag.name)}: '
        f"{schedule.makespan_cycles:,} cycles on {schedule.pes} processing elements{used}</text>"
    )
    mode = "one after another" if schedule.barrier else "overlapping in time"
    yield (
        f'<text x="{LEFT}" y="44" fill="#555555">{dag.tasks_count:,} tasks in {blocks}, {mode} '
        f"({escape(schedule.partition)})</text>"
    )


def _grid(layout: _Layout) -> Iterator[str]:
    """Yield the rows and their names, then the axis."""
    shown_every = 1
    while shown_every * layout.row_height < LABELLED_ROW:
        shown_every *= 2
    for pe in range(layout.rows):
        y, middle = layout.y(pe), layout.y(pe) + layout.row_height / 2 + 4
        if pe % 2 == 0:
            yield (
                f'<rect x="{LEFT}" y="{y:.2f}" width="{PLOT_WIDTH}" height="{layout.row_height:.2f}" fill="#f4f4f4"/>'
            )
        if pe % shown_every == 0:
            yield f'<text x="{LEFT - 6}" y="{middle:.2f}" text-anchor="end" fill="#333333">PE {pe}</text>'
    bottom = layout.bottom
    for cycle in ticks(layout.cycles):
        x = layout.x(cycle)
        yield f'<path d="M{x:.2f} {TOP}V{bottom + 5:.2f}" stroke="#cccccc" stroke-width="0.6"/>'
        yield f'<text x="{x:.2f}" y="{bottom + 18:.2f}" text-anchor="middle" fill="#333333">{cycle:,}</text>'
    yield f'<path d="M{LEFT} {bottom:.2f}H{LEFT + PLOT_WIDTH}" stroke="#333333"/>'
    yield f'<text x="{LEFT + PLOT_WIDTH / 2}" y="{bottom + 34:.2f}" text-anchor="middle" fill="#333333">cycles</text>'


def ticks(cycles: int) -> list[int]:
    """Return the places of marks from 0 on: 1, 2 or 5 times a power of ten apart, at most ten steps.

    >>> ticks(52_710)
    [0, 10000, 20000, 30000, 40000, 50000]
    """
    power = 1
    while power * 10 * MOST_TICKS < cycles:
        power *= 10
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * MOST_TICKS >= cycles)
    return list(range(0, cycles + 1, step))


def _bars(dag: CanonicalDag, schedule: Schedule, layout: _Layout, operators: Sequence[str]) -> Iterator[str]:
    """Yield a group of bars per operator."""
    members: dict[str, list[int]] = {operator: [] for operator in operators}
    for node in (schedule.pe != NO_PE).nonzero()[0].tolist():
        members[dag.scopes[dag.node_scope[node]].origin].append(node)
    for number, operator in enumerate(operators):
        yield f'<g fill="{_colour(number)}">'
        for node in members[operator]:
            yield from _bar(dag, schedule, layout, node)
        yield "</g>"


def _bar(dag: CanonicalDag, schedule: Schedule, layout: _Layout, node: int) -> Iterator[str]:
    start, end, pe = int(schedule.start[node]), int(schedule.last_out[node]), int(schedule.pe[node])
    x, width = layout.x(start), layout.x(end) - layout.x(start)
    gap = 0.6 if width > 3 else 0.0  # between bars; too much for narrow ones
    height = layout.row_height - (2 if layout.row_height > LABELLED_ROW else 0.6)
    y = layout.y(pe) + (layout.row_height - height) / 2
    name = escape(dag.node_name(node))
    yield (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width - gap, 0.5):.2f}" height="{height:.2f}">'
        f"<title>{name}: {start:,} to {end:,}, block {schedule.block[node]}</title></rect>"
    )
    if layout.row_height > LABELLED_BAR and width > CHARACTER * len(dag.node_name(node)) + 6:
        yield f'<text x="{x + 4:.2f}" y="{y + height / 2 + 4:.2f}" fill="#111111">{name}</text>'


def _boundaries(dag: CanonicalDag, schedule: Schedule, layout: _Layout) -> Iterator[str]:
    """Yield a line where each spatial block begins, with its number where there is room."""
    if not schedule.barrier or schedule.blocks_count > MOST_BOUNDARIES:
        return
    begins: dict[int, int] = {}
    task = dag.is_computational
    for block, start in zip(schedule.block[task].tolist(), schedule.start[task].tolist(), strict=True):
        begins[block] = min(start, begins.get(block, start))
    yield f'<text x="{LEFT - 6}" y="{TOP - 6}" text-anchor="end" fill="#555555">block</text>'
    last_line = last_label = -float(WIDTH)
    for block, begin in sorted(begins.items()):
        x, end = layout.x(begin), float(TOP)
        if x - last_line >= BOUNDARY_ROOM:
            last_line, end = x, layout.bottom
        yield (f'<path d="M{x:.2f} {TOP - 5}V{end:.2f}" stroke="#222222" stroke-width="0.7" stroke-dasharray="3 2"/>')
        if x - last_label >= BOUNDARY_LABEL:
            last_label = x
            yield f'<text x="{x + 2:.2f}" y="{TOP - 6}" fill="#555555">{block}</text>'


def _legend_columns() -> int:
    return PLOT_WIDTH // LEGEND_COLUMN


def _legend(operators: Sequence[str], top: float) -> Iterator[str]:
    shown = operators if len(operators) <= MOST_LEGEND else operators[: MOST_LEGEND - 1]
    entries = [(_short(operator), _colour(number)) for number, operator in enumerate(shown)]
    if len(shown) < len(operators):
        entries.append((f"and {len(operators) - len(shown)} more", "white"))
    for number, (text, colour) in enumerate(entries):
        row, column = divmod(number, _legend_columns())
        x, y = LEFT + column * LEGEND_COLUMN, top + row * LINE
        yield f'<rect x="{x}" y="{y - 10:.2f}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="{y:.2f}" fill="#333333">{escape(text)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= LEGEND_LETTERS else f"{name[: LEGEND_LETTERS - 1]}…"
