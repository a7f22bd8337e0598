"""From a model to the Pareto set of its lowerings: what ``dfcompile explore`` does."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfcompile.api.runs import Shown
from dfcompile.canonical_dag.extraction.granularity import parse_granularity
from dfcompile.dfmodel_backend import load_system
from dfcompile.errors import UserError
from dfcompile.exploration import Asked, Explored, Objective, explore_space
from dfcompile.exploration.explored import Progress, ResultStore, default_store
from dfcompile.exploration.workers import DaskCluster, InThisProcess, LocalProcesses, Workers, processors
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.host.garbage import collected_seldom
from dfcompile.host.stages import work_of
from dfcompile.lowering import registered_expansions
from dfcompile.options import ExploreOptions, ShowStage, of_stage, read_options, show_nothing, takes
from dfcompile.options.readers import File
from dfcompile.report.exploration import exploration_record, exploration_rows, exploration_table
from dfcompile.report.plain_values import Json
from dfcompile.scheduler import registered_partitioners


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExplorationRun(Shown):
    """An exploration, and its report.

    Attributes:
        explored: what was found.
        files: that were read.
    """

    explored: Explored
    files: tuple[Path, ...] = ()

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per point of the Pareto set."""
        return exploration_rows(self.explored)

    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""
        return exploration_record(self.explored)

    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the report as tables for people."""
        return exploration_table(self.explored, width, verbose=verbose)

    @property
    def answer(self) -> str:
        """The report in one line."""
        rows = sorted(self.to_rows(), key=lambda row: float(str(row["makespan_cycles"])))
        fastest = f", the fastest {rows[0]['makespan_cycles']:,} cycles on {rows[0]['pes']} PEs" if rows else ""
        return f"{self.explored.model}: {len(rows)} points{fastest}"


def _nobody(_told: object) -> None:
    """Tell nobody."""


@takes(ExploreOptions)
def explore_model(
    model: File,
    *,
    show: ShowStage = show_nothing,
    notify: Callable[[Progress], None] = _nobody,
    warn: Callable[[str], None] = _nobody,
    **options: Any,
) -> ExplorationRun:
    """Find the Pareto set over expansions, granularities, processing elements and on-chip memory.

    Args:
        model: a file.
        show: gives a context that lasts as long as a stage, for showing progress.
        notify: is told how far it is.
        warn: is told of corrupted entries of the cache.
        options: by name.

    Raises:
        UserError: in any stage.
    """
    return explored(read_options(ExploreOptions, {"model": model, **options}), show, notify, warn)


@collected_seldom()
def explored(
    options: ExploreOptions,
    show: ShowStage = show_nothing,
    notify: Callable[[Progress], None] = _nobody,
    warn: Callable[[str], None] = _nobody,
) -> ExplorationRun:
    """Explore with options that were read already; see `explore_model`."""
    reading = ReadOptions(**of_stage(options, "reading"), reads_weights=False)
    registered_partitioners().find(options.partition, "--partition")
    system = load_system(options.system)
    if not (hardware := system.streams.hardware).is_literature:
        raise UserError(
            f"explore: system {system.name!r}: found {hardware.hop_cycles} cycles through a FIFO against FIFOs that "
            f"pass through, and {hardware.pipeline_cycles} through a pipeline against none "
            "(dfcompile MODEL --system schedules with them)"
        )
    asked = Asked(
        pes=options.pes,
        memories=options.on_chip_memory,
        objectives=tuple(map(Objective, options.objective)),
        rules=options.expand.rules,
        granularities=tuple(dict.fromkeys(parse_granularity(text) for text in options.granularity)),
        system=system,
        partition=options.partition,
        tries=options.tries,
    )
    for count in asked.pes:
        asked.machine(count, 1)
    table = registered_expansions()
    files = (options.model, *map(Path, filter(None, (options.system,))))
    count = options.jobs or processors()
    path = options.cache or default_store()
    with show(f"reading {options.model}"):  # before the cache is opened, which is none of the model's files
        program = read_model(options.model, reading).program
    with (
        closing(ResultStore(path, warn)) as store,
        closing(_workers(count, options.cluster)) as workers,
        show(f"exploring {program.name}"),
        work_of(asked.tries) as work,
    ):

        def tell(progress: Progress) -> None:
            work.is_at(progress.tries, f"gap {100 * progress.gap:.1f} %" if progress.gap else "")
            notify(progress)

        found = explore_space(program, table, asked, store, workers, tell)
    return ExplorationRun(found, files)


def _workers(count: int, cluster: str | None) -> Workers:
    if cluster is not None:
        return DaskCluster(cluster)
    return InThisProcess() if count == 1 else LocalProcesses(count)
