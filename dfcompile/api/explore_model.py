"""From a model to the Pareto set of its lowerings: what ``dfcompile explore`` does."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dfcompile.api.pages import Paged, PageSource
from dfcompile.api.requests import (
    NO_DIMS,
    NO_FIXED_INPUTS,
    NO_SHAPES,
    Counts,
    Dims,
    File,
    FixedInputs,
    Names,
    Rules,
    Shapes,
    compile_options,
    rules_of,
)
from dfcompile.canonical_dag.extraction.granularity import parse_granularity
from dfcompile.dfmodel_backend import load_system
from dfcompile.errors import UserError
from dfcompile.expansion_names import PUBLISHED, named_word
from dfcompile.exploration import Asked, Explored, explore_space, parse_memories, parse_objectives
from dfcompile.exploration.answers import Question, keep_answer, known_answer
from dfcompile.exploration.cluster import DaskCluster
from dfcompile.exploration.explored import Progress
from dfcompile.exploration.result_store import ResultStore, default_store
from dfcompile.exploration.workers import InThisProcess, LocalProcesses, Workers, processors
from dfcompile.frontend import FILE_KINDS, Program, ReadOptions, read_model
from dfcompile.host.stages import work_of
from dfcompile.lowering import ExpansionTable, registered_expansions
from dfcompile.options import DEFAULT_TRIES, ShowStage, show_nothing
from dfcompile.plugins import is_own
from dfcompile.report.exploration import exploration_record, exploration_rows, exploration_text
from dfcompile.report.plain_values import Json
from dfcompile.report.report_format import WIDTH
from dfcompile.scheduler import registered_partitioners

MOST_JOBS = 1024
MOST_TRIES = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class ExplorationRun(Paged):
    """An exploration, and its report.

    Attributes:
        explored: what was found.
        files: that were read.
    """

    explored: Explored
    files: tuple[Path, ...] = ()

    @property
    def rows(self) -> list[dict[str, Json]]:
        """A row per point of the Pareto set; ``pandas.DataFrame(run.rows)`` is the table."""
        return exploration_rows(self.explored)

    @property
    def record(self) -> dict[str, Json]:
        """All of the report, as JSON has it."""
        return exploration_record(self.explored)

    def text(self, form: str = "table", width: int = WIDTH, *, verbose: bool = True) -> str:
        """Return the report as ``table``, ``json`` or ``csv``."""
        return exploration_text(self.explored, form, width, verbose=verbose)

    @property
    def report_json(self) -> str:
        """The report as ``--format json`` writes it."""
        return self.text("json")

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report."""
        return PageSource(self.files)


def _nobody(_progress: Progress) -> None:
    """Tell nobody."""


def _say_nothing(_line: str) -> None:
    """Warn of nothing."""


def explore_model(
    model: File,
    *,
    pes: Counts,
    on_chip_memory: str,
    objective: str = "makespan,io,area",
    expand: Rules = (),
    granularity: Names = ("declared",),
    shapes: Shapes = NO_SHAPES,
    dims: Dims = NO_DIMS,
    fixed_inputs: FixedInputs = NO_FIXED_INPUTS,
    system: File | None = None,
    partition: str = "sb-rlx",
    tries: int = DEFAULT_TRIES,
    jobs: int | None = None,
    cluster: str | None = None,
    cache: File | None = None,
    show: ShowStage = show_nothing,
    notify: Callable[[Progress], None] = _nobody,
    warn: Callable[[str], None] = _say_nothing,
) -> ExplorationRun:
    """Find the Pareto set over expansions, granularities, processing elements and on-chip memory.

    Args:
        model: a file.
        pes: numbers of processing elements.
        on_chip_memory: amounts such as ``256,1024,8MB``, in kB without a unit.
        objective: what is to be small, of ``makespan``, ``io``, ``area``, ``energy`` and ``cost``.
        expand: rules that limit what is chosen from; without them everything is.
        granularity: of the tasks, one or several.
        shapes: sizes of inputs that the model leaves open.
        dims: sizes of symbolic dimensions of the inputs.
        fixed_inputs: values that inputs have in every run, such as ``{"use_cache": False}``; one number stands for all
            elements.
        system: name or file, for energy and cost; ``None``: the canonical machine.
        partition: name of the partitioner.
        tries: schedules that are made at most.
        jobs: processes on this machine; ``None``: as many as there are processors.
        cluster: address of a Dask scheduler whose workers are used instead.
        cache: file of results; ``None``: in the user's cache folder.
        show: gives a context that lasts as long as a stage, for showing progress.
        notify: is told how far it is.
        warn: is told of corrupted entries of the cache.

    Raises:
        UserError: in any stage.
    """
    options = compile_options(
        model,
        pes=pes,
        expand=expand,
        shapes=shapes,
        dims=dims,
        fixed_inputs=fixed_inputs,
        system=system,
        partition=partition,
    )
    reading = ReadOptions(shapes=options.shapes, dims=options.dims, fixed_inputs=options.fixed_inputs)
    word = named_word(rules_of(expand))
    if word not in (None, PUBLISHED):
        raise UserError(f"--expand: found {word}, against rules alone: an exploration chooses in any case")
    registered_partitioners().find(options.partition, "--partition")
    texts = (granularity,) if isinstance(granularity, str) else tuple(granularity)
    asked = Asked(
        pes=options.pes,
        memories=parse_memories(on_chip_memory),
        objectives=parse_objectives(objective),
        rules=options.expand,
        granularities=tuple(dict.fromkeys(parse_granularity(text) for text in texts)),
        system=load_system(options.system),
        partition=options.partition,
        tries=_within("--tries", tries, MOST_TRIES),
    )
    for count in asked.pes:
        asked.machine(count, 1)
    table = registered_expansions()
    files = (options.model, *map(Path, filter(None, (options.system,))))
    count = processors() if jobs is None else _within("--jobs", jobs, MOST_JOBS)
    path = default_store() if cache is None else Path(cache)
    question = Question(asked, options.model, reading)
    key = question.key() if _is_all_own(table) else None  # sources of others are not looked at

    def read() -> Program:
        with show(f"reading {model}"):
            return read_model(options.model, reading).program

    program = read() if key is None else None  # the cache is none of the model's files, which are known by then
    with closing(ResultStore(path, warn)) as store:
        known = None if key is None else known_answer(key, question, store)
        if known is not None:
            return ExplorationRun(known, files)
        with closing(_workers(count, cluster)) as workers:
            program = program or read()
            with show(f"exploring {program.name}"), work_of(asked.tries) as work:

                def tell(progress: Progress) -> None:
                    work.is_at(progress.tries, f"gap {100 * progress.gap:.1f} %" if progress.gap else "")
                    notify(progress)

                found = explore_space(program, table, asked, store, workers, tell)
        if key is not None:
            keep_answer(key, question, found, store)
        return ExplorationRun(found, files)


def _is_all_own(table: ExpansionTable) -> bool:
    """Whether all parts that an answer may depend on are dfcompile's."""
    partitioners = registered_partitioners().plugins
    kinds = FILE_KINDS.collect().plugins
    return all(is_own(plugin.origin) for plugins in (table.plugins, partitioners, kinds) for plugin in plugins)


def _workers(count: int, cluster: str | None) -> Workers:
    if cluster is not None:
        return DaskCluster(cluster)
    return InThisProcess() if count == 1 else LocalProcesses(count)


def _within(option: str, number: int, most: int) -> int:
    if not 1 <= number <= most:
        raise UserError(f"{option}: found {number} against 1 to {most}")
    return number
