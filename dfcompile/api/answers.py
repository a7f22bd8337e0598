"""Bounds, studies of language models and comparisons, as Python calls give them back; and pages, opened."""

import tempfile
import webbrowser
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dfcompile.api.bound_traffic import bounds_of, with_machine
from dfcompile.api.language_models import StudyRun, request_of, swept
from dfcompile.api.runs import Paged, Shown
from dfcompile.errors import UserError
from dfcompile.language_models.study import study_of
from dfcompile.options import ShowStage, read_options, show_nothing, takes
from dfcompile.options.commands import BoundsOptions
from dfcompile.options.language_models import LanguageOptions
from dfcompile.options.readers import File
from dfcompile.page.comparison import Comparison, compare_reports, comparison_rows, comparison_text
from dfcompile.page.reading import read_report, report_in
from dfcompile.report.plain_values import Json
from dfcompile.report.report_format import WIDTH
from dfcompile.report.traffic_bounds import BoundsReport, bounds_rows, bounds_text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundsRun(Shown):
    """How little a model or a shape can move.

    Attributes:
        report: all figures.
        files: that were read.
    """

    report: BoundsReport
    files: tuple[Path, ...] = ()

    def text(self, form: str = "table", width: int = WIDTH, *, verbose: bool = True) -> str:
        """Return the report as ``table``, ``json`` or ``csv``."""
        del verbose
        return bounds_text(self.report, form, width)

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per operator, or way to hold tensors, and buffer."""
        return bounds_rows((*self.report.fusions, *self.report.operators))

    @property
    def answer(self) -> str:
        """The report in one line."""
        return f"{self.report.subject}: {len(self.to_rows())} bounds"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparisonRun(Shown):
    """What changed between reports.

    Attributes:
        comparison: all changes.
        files: of reports that were read.
    """

    comparison: Comparison
    files: tuple[Path, ...] = ()

    def text(self, form: str = "table", width: int = WIDTH, *, verbose: bool = True) -> str:
        """Return the changes as ``table``, ``json`` or ``csv``."""
        del verbose
        return comparison_text(self.comparison, form, width)

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per change."""
        return comparison_rows(self.comparison)

    @property
    def text_columns(self) -> Collection[str]:
        """Names of columns of texts: figures are numbers, words or missing, all in one column."""
        return ("base", "value")

    @property
    def answer(self) -> str:
        """The report in one line."""
        return f"{len(self.comparison.changes):,} differences among {self.comparison.figures:,} figures"


@takes(BoundsOptions)
def bounds(model: File | None = None, *, show: ShowStage = show_nothing, **options: Any) -> BoundsRun:
    """Say how little a model, a product, a convolution, a chain or attention can move, for every buffer size.

    Args:
        model: a file; or a shape is given as ``gemm="4096,4096,4096"``.
        show: gives a context that lasts as long as a stage, for showing progress.
        options: by name.

    Raises:
        UserError: the model cannot be read, or an option has another form.
    """
    asked = read_options(BoundsOptions, {"model": model, **options})
    found = bounds_of(asked, draws=True, show=show)
    if asked.system is not None:
        found, _ = with_machine(found, asked.system)
    return BoundsRun(found, tuple(Path(name) for name in (asked.model, asked.system) if name is not None))


@takes(LanguageOptions)
def llm(config: File, system: File, **options: Any) -> StudyRun:
    """Count and time a language model from its configuration: prompts, decodes, or both in one step.

    Args:
        config: a file, a folder, or a name.
        system: a device, a spreadsheet or a system file.
        options: by name.

    Raises:
        UserError: the configuration cannot be read, an option has another form, or a step does not fit; or the option
            asks for something else than a study.
    """
    asked = read_options(LanguageOptions, {"config": config, "system": system, **options})
    for name in ("map", "from_graph", "from_onnx", "compat"):
        if getattr(asked, name):
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"llm: found {name} against a study of kernels (dfcompile llm {flag} prints it)")
    request = request_of(asked)
    rows = swept(request, asked.sweep) if asked.sweep else ()
    return StudyRun(study_of(request), rows, files=(Path(asked.config), Path(asked.system)))


def compare(*reports: Paged | File) -> ComparisonRun:
    """Say what changed between reports of one kind: by how much, and where.

    Args:
        reports: two or more: what calls gave back, or files of JSON or pages; what follows the first is held against
            it.

    Raises:
        UserError: fewer than two, one that cannot be read, or reports of several kinds.
    """
    if len(reports) < 2:
        raise UserError(f"compare: found {len(reports)} reports against two or more")
    read = [
        (str(one), read_report(Path(one)))
        if isinstance(one, str | PathLike)
        else (f"report {number}", report_in(one.report_json, f"report {number}"))
        for number, one in enumerate(reports, 1)
    ]
    files = tuple(Path(one) for one in reports if isinstance(one, str | PathLike))
    return ComparisonRun(compare_reports(read), files)


def open_page(found: Paged, file: File | None = None) -> Path:
    """Write the page of what a call gave back, and open it in the browser.

    Args:
        found: what `compile`, `explore`, `bounds`, `llm`, `schedule`, `solve` or `compare` gave back.
        file: to write; by default one of its own in the folder of temporary files.

    Returns:
        The file.

    Raises:
        UserError: the file cannot be written.
    """
    target = Path(tempfile.mkdtemp(prefix="dfcompile-")) / "page.html" if file is None else Path(file)
    found.html(target)
    webbrowser.open(target.resolve().as_uri())
    return target
