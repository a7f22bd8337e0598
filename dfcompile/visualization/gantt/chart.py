"""The Gantt chart: a row per processing element, bars coloured by operator, what joins them, and a legend.

The bars of a Gantt chart: a task from its start to its end, as high as the share of cycles in which it works.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, total_work
from dfcompile.errors import UserError
from dfcompile.scheduler import NO_PE, Schedule
from dfcompile.scheduler.activity import Activity, activity
from dfcompile.visualization.gantt import connections
from dfcompile.visualization.gantt.layout import CHARACTER, LEFT, PLOT_WIDTH, WIDTH, Layout, colour, escape, grid, runs

_LABELLED_BAR = 14.0  # pixels that a name in a bar needs
_NARROW_BAR = 1.0  # pixels: narrower bars of one operator side by side are one
_PALE = 0.32  # opacity of a task that waits
_BESIDE_NAME = 6.6  # pixels of a bar beside its name
_HALO = 'stroke="white" stroke-opacity="0.75" stroke-width="2.5" paint-order="stroke"'


def bars(
    dag: CanonicalDag, schedule: Schedule, layout: Layout, operators: Sequence[str], happening: Activity | None
) -> Iterator[str]:
    """Yield a group of bars per operator."""
    members: dict[str, list[int]] = {operator: [] for operator in operators}
    for node in (schedule.pe != NO_PE).nonzero()[0].tolist():
        members[dag.scopes[dag.node_scope[node]].origin].append(node)
    drawing = _Bars(dag, schedule, layout, happening)
    for number, operator in enumerate(operators):
        yield f'<g fill="{colour(number)}">'
        by_row = sorted(members[operator], key=lambda node: (schedule.pe[node], schedule.start[node]))
        for together in runs(by_row, drawing.is_beside):
            yield from drawing.bar(together[0]) if len(together) == 1 else drawing.several(together)
        yield "</g>"


def names(dag: CanonicalDag, schedule: Schedule, layout: Layout) -> Iterator[str]:
    """Yield the names of tasks in the bars that have room for them, to be read where streams cross them."""
    if layout.row_height <= _LABELLED_BAR:
        return
    yield f'<g class="wide names" {_HALO} fill="#111111" pointer-events="none">'
    for node in (schedule.pe != NO_PE).nonzero()[0].tolist():
        x, y = layout.x(int(schedule.start[node])), layout.middle(int(schedule.pe[node])) + 4
        name = dag.node_name(node)
        if layout.x(int(schedule.last_out[node])) - x > CHARACTER * len(name) + _BESIDE_NAME:
            yield f'<text x="{x + 4:.2f}" y="{y:.2f}">{escape(name)}</text>'
    yield "</g>"


class _Bars:
    def __init__(self, dag: CanonicalDag, schedule: Schedule, layout: Layout, happening: Activity | None) -> None:
        self._dag, self._schedule, self._layout, self._happening = dag, schedule, layout, happening

    def bar(self, node: int) -> Iterator[str]:
        """Yield the bar of a task."""
        layout, schedule = self._layout, self._schedule
        begin, end, pe = int(schedule.start[node]), int(schedule.last_out[node]), int(schedule.pe[node])
        x, width = layout.x(begin), layout.x(end) - layout.x(begin)
        width = max(width - (0.6 if width > 3 else 0.0), 0.5)  # room between bars; too much for narrow ones
        name = escape(self._dag.node_name(node))
        phases = () if self._happening is None else self._happening.phases[node]
        worked = sum(phase.worked_cycles for phase in phases)
        waits = bool(phases) and worked < end - begin
        title = f"{name}: {begin:,} to {end:,}, block {schedule.block[node]}"
        title += f", works {worked:,} of {end - begin:,} cycles" if waits else ""
        yield self._rectangle((x, width), pe, title, pale=waits)
        if waits:
            # What a task works as a shape over its bar, as high as the share of cycles that it works in.
            bottom = layout.bar_top(pe) + layout.bar_height
            path = [f"M{layout.x(phases[0].begin):.2f} {bottom:.2f}"]
            for phase in phases:
                share = phase.worked_cycles / (phase.end - phase.begin)
                path.append(f"V{bottom - share * layout.bar_height:.2f}H{layout.x(phase.end):.2f}")
            yield f'<path d="{"".join(path)}V{bottom:.2f}Z" pointer-events="none"/>'

    def several(self, nodes: Sequence[int]) -> Iterator[str]:
        """Yield one bar for several tasks."""
        schedule, layout = self._schedule, self._layout
        begin = int(schedule.start[nodes[0]])
        end = max(int(schedule.last_out[node]) for node in nodes)
        x, width = layout.x(begin), max(layout.x(end) - layout.x(begin), 0.5)
        first, last = (escape(self._dag.node_name(node)) for node in (nodes[0], nodes[-1]))
        title = f"{len(nodes):,} tasks, {first} to {last}: {begin:,} to {end:,}"
        yield self._rectangle((x, width), int(schedule.pe[nodes[0]]), title, pale=False)

    def _rectangle(self, span: tuple[float, float], pe: int, title: str, *, pale: bool) -> str:
        layout, (x, width) = self._layout, span
        opacity = f' fill-opacity="{_PALE}"' if pale else ""
        return (
            f'<rect x="{x:.2f}" y="{layout.bar_top(pe):.2f}" width="{width:.2f}" height="{layout.bar_height:.2f}"'
            f"{opacity}><title>{title}</title></rect>"
        )

    def is_beside(self, last: int, node: int) -> bool:
        """Return whether two tasks are narrower than a pixel, side by side in one row: such are one bar."""
        schedule, x = self._schedule, self._layout.x
        ends = [(x(int(schedule.start[each])), x(int(schedule.last_out[each]))) for each in (last, node)]
        is_narrow = all(end - begin < _NARROW_BAR for begin, end in ends)
        return bool(is_narrow and schedule.pe[last] == schedule.pe[node] and ends[1][0] - ends[0][1] < _NARROW_BAR)


LARGEST_PICTURE = 20_000  # tasks: more bars than that are neither readable nor quick to draw
_BELOW = 66  # pixels from the axis to the legend
_STEP = 4  # pixels in which a task is drawn to work or wait evenly
_NARROW_WINDOW = 700  # pixels: in a narrower one the chart is scaled, and has fewer and larger letters
_NARROW_LETTERS = 28  # pixels before scaling
_NARROW_TICK = 12  # pixels that larger numbers below the axis stand lower
_APART = 4  # pixels between operators and marks
_MOST_OPERATORS = 30
_LETTERS = 26
_GREY = "#888888"
_SQUARE = '<rect y="-10" width="12" height="12" fill="{}"/>'
_PALE_SQUARE = f'<rect y="-10" width="12" height="12" fill="{_GREY}" fill-opacity="0.32"/>'
_SIGNS = {
    "works": _SQUARE.format(_GREY),
    "works half of the time": f'{_PALE_SQUARE}<rect y="-4" width="12" height="6" fill="{_GREY}"/>',
    "waits": _PALE_SQUARE,
    "stream": f'<path d="M-2 1C5 1 7 -9 14 -9" fill="none" stroke="{connections.STREAM}" stroke-width="1.2"/>',
    "gang": f'<rect y="-10" width="12" height="12" fill="none" stroke="{connections.GANG}"/>',
    "critical": f'<path d="M-2 -4H14" stroke="{connections.CRITICAL}" stroke-width="1.8"/>',
}


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
    """Return the Gantt chart of a schedule; what its tasks do is found by a replay.

    Raises:
        UserError: there are too many tasks for a picture.
    """
    check_drawable(dag)
    layout = Layout(schedule.makespan_cycles, int(schedule.pe.max(initial=0)) + 1)
    happening = activity(dag, schedule, PLOT_WIDTH // _STEP)
    origins = (dag.scopes[scope].origin for scope in dag.node_scope[dag.is_computational].tolist())
    operators = tuple(dict.fromkeys(origins))
    legend = _Legend(operators, tuple(_marks(schedule, happening)))
    top = layout.bottom + _BELOW
    height, narrow = f"{top + legend.height(_WIDE):.0f}", f"{top + legend.height(_NARROW):.0f}"
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gantt" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="xMidYMin meet" '
            'font-family="Helvetica, Arial, sans-serif" font-size="11">'
        ),
        _style(narrow),
        f'<rect width="{WIDTH}" height="{narrow}" fill="white"/>',
        *_title(dag, schedule, layout.rows, happening),
        *grid(layout),
        *bars(dag, schedule, layout, operators, happening),
        *connections.gangs(schedule, layout),
        *connections.boundaries(dag, schedule, layout),
        *connections.streams(dag, schedule, layout),
        *names(dag, schedule, layout),
        *connections.critical_chain(schedule, layout, () if happening is None else happening.path),
        *legend.drawn(top),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style(narrow_height: str) -> str:
    """Return what changes under the pointer and in narrow windows: there the chart is as wide as the window."""
    return (
        "<style>.gantt .narrow{display:none}"
        ".gantt .streams path:hover{stroke:#cc0022;stroke-opacity:1;stroke-width:2.5}"
        f"@media (max-width:{_NARROW_WINDOW}px){{.gantt .wide{{display:none}}.gantt .narrow{{display:inline}}"
        f".gantt{{width:100%;height:auto;aspect-ratio:{WIDTH}/{narrow_height}}}"
        f".gantt text.narrow,.gantt .tick{{font-size:{_NARROW_LETTERS}px}}"
        f".gantt .tick{{transform:translateY({_NARROW_TICK}px)}}}}</style>"
    )


def _title(dag: CanonicalDag, schedule: Schedule, rows: int, happening: Activity | None) -> Iterator[str]:
    blocks = f"{schedule.blocks_count:,} {'spatial block' if schedule.barrier else 'gang'}"
    blocks += "" if schedule.blocks_count == 1 else "s"
    used = "" if rows == schedule.pes else f" ({rows} used)"
    mode = "one after another" if schedule.barrier else "overlapping in time"
    title = f"{escape(dag.name)}: {schedule.makespan_cycles:,} cycles on {schedule.pes} processing elements"
    shares = _shares(dag, schedule, happening)
    yield f'<text class="wide" x="{LEFT}" y="26" font-size="16" font-weight="bold">{title}{used}</text>'
    yield (
        f'<text class="wide" x="{LEFT}" y="44" fill="#555555">{dag.tasks_count:,} tasks in {blocks}, {mode} '
        f"({escape(schedule.partition)}); {schedule.fifo_capacity.sum():,} elements in FIFOs</text>"
    )
    yield f'<text class="wide" x="{LEFT}" y="60" fill="#555555">{shares}{_unknown(happening)}</text>'
    yield f'<text class="narrow" x="8" y="36" font-weight="bold">{title}</text>'
    yield f'<text class="narrow" x="8" y="74" fill="#555555">{shares}</text>'


def _shares(dag: CanonicalDag, schedule: Schedule, happening: Activity | None) -> str:
    """Return which part of the time processing elements work, hold a task that waits, and have none."""
    whole = schedule.pes * schedule.makespan_cycles
    utilization = f"utilization {_percent(total_work(dag), whole)}"
    if happening is None:
        return utilization
    waits = happening.occupied_cycles - happening.worked_cycles
    idle = whole - happening.occupied_cycles
    return f"{utilization}, waiting {_percent(waits, whole)}, without a task {_percent(idle, whole)}"


def _unknown(happening: Activity | None) -> str:
    """Return what the chart does not show."""
    if happening is None:
        return "; times of mean streaming intervals: who waits when is not known"
    if happening.averaged:
        return f"; of {happening.averaged:,} tasks that stream too much to be followed only means are known"
    return ""


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def _marks(schedule: Schedule, happening: Activity | None) -> Iterator[tuple[str, str]]:
    """Yield the signs that the chart has, and what they mean."""
    if happening is not None:
        yield from ((sign, sign) for sign in ("works", "works half of the time", "waits"))
    drawn, there = len(connections.drawn_streams(schedule)), int(schedule.streamed.sum())
    if drawn:
        yield "stream", "stream; wider: larger FIFO" if drawn == there else f"stream ({drawn} of {there:,})"
    if not schedule.barrier:
        yield "gang", "gang in neighbouring rows"
    if happening is not None and happening.path:
        yield "critical", "critical path"


class _Legend(Struct, frozen=True):
    """What a chart explains.

    Attributes:
        operators: in the order of their colours.
        marks: signs, one of ours each, and what they stand for.
    """

    operators: tuple[str, ...]
    marks: tuple[tuple[str, str], ...]

    def height(self, columns: "_Columns") -> int:
        """Return its pixels, in a narrow window before scaling."""
        return columns.line * (columns.rows(len(self._colours)) + columns.rows(len(self.marks))) + _APART

    def drawn(self, top: float) -> Iterator[str]:
        """Yield it in columns, once for a wide window and once for a narrow one: operators, then the other marks."""
        signs = [(text, _SIGNS[sign]) for sign, text in self.marks]
        for name, columns in (("wide", _WIDE), ("narrow", _NARROW)):
            yield f'<g class="{name}">'
            yield from columns.drawn(self._colours, top)
            yield from columns.drawn(signs, top + columns.line * columns.rows(len(self._colours)) + _APART)
            yield "</g>"

    @property
    def _colours(self) -> list[tuple[str, str]]:
        is_whole = len(self.operators) <= _MOST_OPERATORS
        shown = self.operators if is_whole else self.operators[: _MOST_OPERATORS - 1]
        names = (name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…" for name in shown)
        entries = [(name, _SQUARE.format(colour(number))) for number, name in enumerate(names)]
        return entries if is_whole else [*entries, (f"and {len(self.operators) - len(shown)} more", "")]


class _Columns(Struct, frozen=True):
    """How entries stand beside each other: pixels of a line and of a column, and by how much signs are larger."""

    line: int
    width: int
    scale: float

    def rows(self, entries: int) -> int:
        return -(-entries // (PLOT_WIDTH // self.width))

    def drawn(self, entries: Sequence[tuple[str, str]], top: float) -> Iterator[str]:
        for number, (text, sign) in enumerate(entries):
            row, column = divmod(number, PLOT_WIDTH // self.width)
            x, y = LEFT + column * self.width, top + row * self.line
            yield f'<g transform="translate({x} {y:.2f}) scale({self.scale})">{sign}'
            yield f'<text x="18" font-size="11" fill="#333333">{escape(text)}</text></g>'


_WIDE, _NARROW = _Columns(18, 190, 1), _Columns(44, 390, 2.4)
