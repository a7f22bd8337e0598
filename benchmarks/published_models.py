"""ResNet-50 and the encoder layer beside the paper's figures, and what each difference brings.

``python -m benchmarks.published_models`` prints the tables of docs/models.md. The paper gives numbers of nodes and
buffers and two speedups of each model, no graphs. So the map scopes of our lowering are changed, one difference after
another.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dfcompile.canonical_dag import CanonicalDag, critical_path, streaming_depth, total_work
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.canonical_dag.extraction.scopes import Access, LoweredGraph, MapScope
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.lowering import addressed, operator_origins, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, Effort, Timing
from dfcompile.options.readers import parse_expand
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.baseline import schedule_non_streaming
from dfcompile.scheduler.streaming_schedule import timed_schedule

Edit = Callable[[LoweredGraph], LoweredGraph]
MODELS = Path(__file__).parent / "models"


def edited(graph: LoweredGraph, edit: Callable[[MapScope], MapScope]) -> LoweredGraph:
    """Return a graph all of whose scopes were changed."""
    return LoweredGraph(graph.name, tuple(map(edit, graph.scopes)), graph.arrays)


def renamed(graph: LoweredGraph, dropped: Sequence[MapScope], names: dict[str, str]) -> LoweredGraph:
    """Return a graph without some scopes, whose arrays have other names."""

    def access(found: Access) -> Access:
        return replace(found, array=names.get(found.array, found.array))

    left = LoweredGraph(graph.name, tuple(scope for scope in graph.scopes if scope not in dropped), graph.arrays)
    return edited(
        left,
        lambda scope: replace(scope, reads=tuple(map(access, scope.reads)), writes=tuple(map(access, scope.writes))),
    )


def batch_in_turn(graph: LoweredGraph) -> LoweredGraph:
    """A matrix-vector task takes all batches: heads and sequences."""

    def edit(scope: MapScope) -> MapScope:
        spatial = [axis for axis, is_spatial in enumerate(scope.is_spatial) if is_spatial]
        if not scope.name.endswith(".mv"):
            return scope
        return replace(scope, is_spatial=tuple(axis == spatial[-1] for axis in range(len(scope.extents))))

    return edited(graph, edit)


def without_gather(graph: LoweredGraph) -> LoweredGraph:
    """No task takes the columns of a product in turn."""
    dropped = [scope for scope in graph.scopes if scope.name.endswith(".gather")]
    return renamed(graph, dropped, {scope.reads[0].array: scope.writes[0].array for scope in dropped})


def _is_identity(scope: MapScope) -> bool:
    (read,), (write,) = scope.reads, scope.writes
    steps = zip(read.strides, write.strides, scope.extents, strict=True)
    return read.base == write.base and all(one == other or extent == 1 for one, other, extent in steps)


def output_as_view(graph: LoweredGraph) -> LoweredGraph:
    """With one image, the product's matrix is the result."""
    dropped = [scope for scope in graph.scopes if scope.name.endswith(".output") and _is_identity(scope)]
    return renamed(graph, dropped, {scope.reads[0].array: scope.writes[0].array for scope in dropped})


def single_taps_as_views(graph: LoweredGraph) -> LoweredGraph:
    """The matrix of windows of one element is the image."""
    dropped = [scope for scope in graph.scopes if scope.name.endswith(".im2col") and _is_identity(scope)]
    return renamed(graph, dropped, {scope.writes[0].array: scope.reads[0].array for scope in dropped})


def products_by_rows(graph: LoweredGraph) -> LoweredGraph:
    """Outer products come row by row, as what follows reads them, not column by column."""

    def edit(scope: MapScope) -> MapScope:
        orders = {"op": (0, 2, 1), "reduce": (1, 0, 2)}
        order = orders.get(scope.name.rpartition(".")[2])
        if order is None or len(scope.extents) != len(order) or ".matmul." not in scope.name:
            return scope

        def access(found: Access) -> Access:
            return replace(found, strides=tuple(found.strides[axis] for axis in order))

        return replace(
            scope,
            extents=tuple(scope.extents[axis] for axis in order),
            is_spatial=tuple(scope.is_spatial[axis] for axis in order),
            reads=tuple(map(access, scope.reads)),
            writes=tuple(map(access, scope.writes)),
        )

    return edited(graph, edit)


def windows_by_channels(graph: LoweredGraph) -> LoweredGraph:
    """A task per channel fills the matrix of windows, and the border."""

    def edit(scope: MapScope) -> MapScope:
        if not scope.name.endswith((".im2col", ".pad", ".pad.fill")):
            return scope
        axis = next(axis for axis, extent in enumerate(scope.extents) if extent > 1)
        return replace(scope, is_spatial=tuple(other == axis for other in range(len(scope.extents))))

    return edited(graph, edit)


def row(name: str, dag: CanonicalDag, pes: int) -> str:
    """Return a row of the table: numbers of nodes, then speedups."""
    work = total_work(dag)
    speedups = [work / schedule_non_streaming(dag, pes).makespan_cycles]
    for partition in ("sb-lts", "sb-rlx"):
        options = ScheduleOptions(pes, partition, timing=Timing.STEADY, effort=Effort.QUICK)
        speedups.append(work / timed_schedule(dag, options).schedule.makespan_cycles)
    speedups += [work / critical_path(dag), work / streaming_depth(dag)]
    cells = [name, f"{dag.tasks_count:,}", f"{int(dag.is_buffer.sum()):,}", *(f"{value:.1f}" for value in speedups)]
    return f"| {' | '.join(cells)} |"


def rows(file: Path, pes: int, expand: Sequence[str], edits: Sequence[tuple[str, tuple[Edit, ...]]]) -> Iterator[str]:
    """Yield a row per variant of a lowering."""
    table, program = registered_expansions(), read_model(file, ReadOptions(shapes={})).program
    origins = operator_origins(program)
    rules = parse_expand(list(expand))
    choices = [addressed(Choice(rule.op_type, rule.names[0], rule.origin), table, origins) for rule in rules]
    lowered = OutlinedModel(program, table).outline(choices).graph
    for name, several in edits:
        graph = lowered
        for edit in several:
            graph = edit(graph)
        yield row(name, extract_graph(graph, ExtractionOptions()), pes)


RESNET = (
    ("as lowered", ()),
    ("output as a view", (output_as_view,)),
    ("and windows of one element", (output_as_view, single_taps_as_views)),
    ("and products row by row", (output_as_view, single_taps_as_views, products_by_rows)),
    ("and windows by channels", (output_as_view, single_taps_as_views, products_by_rows, windows_by_channels)),
)
ENCODER = (
    ("as lowered", ()),
    ("batches in turn", (batch_in_turn,)),
    ("and no gathering", (batch_in_turn, without_gather)),
)
RUNS: tuple[tuple[str, int, tuple[str, ...], tuple[tuple[str, tuple[Edit, ...]], ...]], ...] = (
    ("resnet_50.py", 2048, ("MatMul=op", "Conv=im2col"), RESNET[:1]),
    ("resnet_50.py", 2048, ("MatMul=op", "Conv=im2col", "22:MatMul=mv"), RESNET),
    ("resnet_50.py", 2048, ("MatMul=mv", "Conv=im2col"), RESNET[:1]),
    ("encoder_layer.py", 1024, ("MatMul=mv",), ENCODER[:1]),
    ("../encoder_apart.py", 1024, ("MatMul=op",), ENCODER[:1]),
    ("../encoder_apart.py", 1024, ("MatMul=mv",), ENCODER),
)


def main() -> None:
    """Print a table per model and expansions."""
    for file, pes, expand, edits in RUNS:
        print(f"\n{file} {' '.join(expand)}, {pes} PEs\n")
        print("| lowering | tasks | buffers | non-streaming | sb-lts | sb-rlx | T1 / T_inf | T1 / T_s_inf |")
        print("|---|---|---|---|---|---|---|---|")
        for line in rows(MODELS / file, pes, expand, edits):
            print(line, flush=True)


if __name__ == "__main__":
    main()
