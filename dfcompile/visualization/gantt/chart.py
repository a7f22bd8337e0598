"""The Gantt chart: a row per processing element, bars coloured by operator, and what joins them."""

from collections.abc import Iterator

from dfcompile.canonical_dag import CanonicalDag, total_work
from dfcompile.errors import UserError
from dfcompile.scheduler import Schedule
from dfcompile.scheduler.activity.profiles import Activity, activity
from dfcompile.visualization.gantt.bars import bars, names
from dfcompile.visualization.gantt.connections import boundaries, critical_chain, drawn_streams, gangs, streams
from dfcompile.visualization.gantt.layout import (
    LEFT,
    NARROW_LETTERS,
    NARROW_WINDOW,
    PLOT_WIDTH,
    WIDTH,
    Layout,
    escape,
    grid,
)
from dfcompile.visualization.gantt.legend import Legend

LARGEST_PICTURE = 20_000  # tasks: more bars than that are neither readable nor quick to draw
_BELOW = 66  # pixels from the axis to the legend
_STEP = 4  # pixels in which a task is drawn to work or wait evenly
_NARROW_TICK = 12  # pixels that larger numbers below the axis stand lower


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
    operators = _operators(dag)
    legend = Legend(operators, tuple(_marks(schedule, happening)))
    top = layout.bottom + _BELOW
    height, narrow = f"{top + legend.height:.0f}", f"{top + legend.narrow_height:.0f}"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gantt" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="xMidYMin meet" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">'
    )
    parts = [
        opening,
        _style(narrow),
        f'<rect width="{WIDTH}" height="{narrow}" fill="white"/>',
        *_title(dag, schedule, layout.rows, happening),
        *grid(layout),
        *bars(dag, schedule, layout, operators, happening),
        *gangs(schedule, layout),
        *boundaries(dag, schedule, layout),
        *streams(dag, schedule, layout),
        *names(dag, schedule, layout),
        *critical_chain(schedule, layout, () if happening is None else happening.path),
        *legend.drawn(top),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style(narrow_height: str) -> str:
    """Return what changes under the pointer and in narrow windows: there the chart is as wide as the window."""
    return (
        "<style>.gantt .narrow{display:none}"
        ".gantt .streams path:hover{stroke:#cc0022;stroke-opacity:1;stroke-width:2.5}"
        f"@media (max-width:{NARROW_WINDOW}px){{.gantt .wide{{display:none}}.gantt .narrow{{display:inline}}"
        f".gantt{{width:100%;height:auto;aspect-ratio:{WIDTH}/{narrow_height}}}"
        f".gantt text.narrow,.gantt .tick{{font-size:{NARROW_LETTERS}px}}"
        f".gantt .tick{{transform:translateY({_NARROW_TICK}px)}}}}</style>"
    )


def _operators(dag: CanonicalDag) -> tuple[str, ...]:
    """Return the origins of tasks, in the order of the graph."""
    task = dag.is_computational
    return tuple(dict.fromkeys(dag.scopes[scope].origin for scope in dag.node_scope[task].tolist()))


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
    drawn, there = len(drawn_streams(schedule)), int(schedule.streamed.sum())
    if drawn:
        yield "stream", "stream; wider: larger FIFO" if drawn == there else f"stream ({drawn} of {there:,})"
    if not schedule.barrier:
        yield "gang", "gang in neighbouring rows"
    if happening is not None and happening.path:
        yield "critical", "critical path"
