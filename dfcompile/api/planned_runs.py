"""What runs that plan the serving and the training of a language model have in common."""

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from dfcompile.api.runs import Shown
from dfcompile.language_models.study import Study
from dfcompile.report.plain_values import Json, to_record
from dfcompile.report.rows import rows_of, text_names
from dfcompile.report.text_tables import folded, listed, page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlannedRun(Shown):
    """Plans for a model.

    Attributes:
        study: of the model and its machine, without steps.
        plans: figures of each, the best first.
        files: that were read, or names of what is shipped.
    """

    study: Study
    plans: tuple[object, ...]
    files: tuple[Path, ...]

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What the figures rest on."""

    @property
    @abstractmethod
    def _heading(self) -> tuple[str, ...]: ...

    @abstractmethod
    def _tables(self, width: int, *, verbose: bool) -> list[str]: ...

    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the plans as tables, with ``verbose`` also what they rest on."""
        lines = [line for text in self._heading for line in folded(text, width, "  ")]
        lines += ["", *self._tables(width, verbose=verbose), *listed("warnings", self.study.warnings, width)]
        notes = self.notes
        lines += listed("assumptions", notes, width) if verbose else [f"{len(notes)} assumptions: -v lists them"]
        return page(lines)

    def _record(self, form: str, **asked: Json) -> dict[str, Json]:
        """Return the plans, and what was asked, as plain values of a format."""
        study = self.study
        return {
            "format": form,
            "model": study.model.name,
            "system": study.device.name,
            "counted_by": study.request.time.value,
            **asked,
            "plans": [to_record(plan) for plan in self.plans],
            "notes": list(self.notes),
            "warnings": list(study.warnings),
        }

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per plan."""
        return rows_of(self.plans)

    @property
    def text_columns(self) -> Collection[str]:
        """Names of columns of texts."""
        return text_names(type(self.plans[0]))
