"""The bars of a Gantt chart: a task from its start to its end, as high as the share of cycles in which it works."""

from collections.abc import Iterator, Sequence

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler import NO_PE, Schedule
from dfcompile.scheduler.activity.profiles import Activity, Phase
from dfcompile.visualization.gantt.layout import CHARACTER, Layout, colour, escape

_LABELLED_BAR = 14.0  # pixels that a name in a bar needs
_NARROW = 1.0  # pixels: narrower bars of one operator side by side are one
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
        for together in drawing.grouped(members[operator]):
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

    def grouped(self, nodes: Sequence[int]) -> Iterator[list[int]]:
        """Yield tasks by themselves, or several that are narrower than a pixel, side by side in one row."""
        schedule = self._schedule
        together: list[int] = []
        for node in sorted(nodes, key=lambda node: (schedule.pe[node], schedule.start[node])):
            if together and not (self._is_narrow(node) and self._is_beside(together, node)):
                yield together
                together = []
            together.append(node)
        if together:
            yield together

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
            yield self._outline(phases, pe)

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

    def _outline(self, phases: Sequence[Phase], pe: int) -> str:
        """Return what a task works as a shape over its bar, as high as the share of cycles that it works in."""
        layout = self._layout
        bottom = layout.bar_top(pe) + layout.bar_height
        path = [f"M{layout.x(phases[0].begin):.2f} {bottom:.2f}"]
        for phase in phases:
            share = phase.worked_cycles / (phase.end - phase.begin)
            path.append(f"V{bottom - share * layout.bar_height:.2f}H{layout.x(phase.end):.2f}")
        return f'<path d="{"".join(path)}V{bottom:.2f}Z" pointer-events="none"/>'

    def _is_narrow(self, node: int) -> bool:
        begin, end = (self._layout.x(int(time[node])) for time in (self._schedule.start, self._schedule.last_out))
        return end - begin < _NARROW

    def _is_beside(self, nodes: Sequence[int], node: int) -> bool:
        schedule, last = self._schedule, nodes[-1]
        gap = self._layout.x(int(schedule.start[node])) - self._layout.x(int(schedule.last_out[last]))
        return schedule.pe[last] == schedule.pe[node] and gap < _NARROW and self._is_narrow(last)
