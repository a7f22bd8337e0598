"""Training plans of a language model: what ``dfcompile llm --train`` prints."""

import re
from dataclasses import dataclass

from dfcompile.api.language_models import files_of, request_of
from dfcompile.api.planned_runs import PlannedRun
from dfcompile.errors import UserError
from dfcompile.language_models.model import Model
from dfcompile.language_models.parallel.deployment import NOTHING
from dfcompile.language_models.steps.batch import LARGEST, Batch, Sequences
from dfcompile.language_models.steps.kernel import Fusion
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.steps.training_kernels import Recompute, TrainingChoices
from dfcompile.language_models.study import case_of, study_of
from dfcompile.language_models.training import training_plans
from dfcompile.options.language_models import LanguageOptions
from dfcompile.report.columns import table_columns
from dfcompile.report.language_models.tables import kernel_table
from dfcompile.report.language_models.training import TrainingFigures, training_figures
from dfcompile.report.plain_values import Json
from dfcompile.report.text_tables import Table

_BATCH = re.compile(r"(\d{1,15})x(\d{1,15})", re.ASCII)
_APART = ("prefill", "decode", "chunked", "sweep", "map")
_NOTES = (
    "the optimiser is Adam; weights and activations are of the dtype, gradients are summed in 4 bytes",
    "exchanges do not overlap with kernels",
    "activations: those that a gradient needs, once each; buffers of exchanges and of the allocator are not counted",
    "contexts of a sequence are not split over chips",
)
_INTERLEAVED = "--interleave: stages are cut as if each had one run of layers"

FORMAT = "dfcompile-training-plans/1"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrainingRun(PlannedRun):
    """Training plans of a model, of which none is both faster and smaller in memory; fastest first.

    Attributes:
        batch: sequences of the step.
    """

    plans: tuple[TrainingFigures, ...]
    batch: Batch

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures rest on."""
        runs = self.study.request.options.interleave > 1
        return (*self.study.notes, *_NOTES, *((_INTERLEAVED,) if runs else ()))

    @property
    def _heading(self) -> tuple[str, ...]:
        group, study = self.batch.groups[0], self.study
        what = f"a step of {group.count:,} sequences of {group.new:,} tokens; counted by {study.request.time.value}"
        return f"training {study.model.name} on {study.device.name}, up to {max(study.request.chips)} chips", what

    def _tables(self, width: int, *, verbose: bool) -> list[str]:
        lines = []
        for name in ("plans", "times", "memory"):
            names, *columns = table_columns(name, self.plans)
            lines += Table(name, (names,), tuple(columns)).lines(width)
        if verbose:
            lines += kernel_table("kernels of the first plan, for one micro-batch", self.plans[0].kernels).lines(width)
        return lines

    def to_record(self) -> dict[str, Json]:
        """Return the plans as plain values."""
        return self._record(FORMAT, sequences=self.batch.sequences, tokens=self.batch.tokens)


def training_run(asked: LanguageOptions) -> TrainingRun:
    """Return training plans.

    Raises:
        UserError: an option is not written as it should be, or one that training does not have is given as well.
        InfeasibleError: no degrees hold the model.
    """
    request = request_of(asked)
    batch = batch_of(asked)
    if request.choices.fusion is Fusion.FULL or request.offload != NOTHING or request.choices.shared_prefix:
        raise UserError("--train: found --fusion full, --offload or --shared-prefix, which training does not have")
    study = study_of(request)
    _check_context(study.model, batch)
    training = TrainingChoices(
        Recompute(asked.recompute), asked.dropout, asked.split_norms, asked.interleave, asked.shard_optimiser
    )
    steps = training_plans(case_of(study, batch), training, request.chips, request.degrees)
    macs = step_of(study.model, batch, study.precision, request.choices).macs
    peak = study.device.rate(study.precision.vectors.name)
    counts = macs, batch.tokens, batch.sequences
    plans = training_figures(steps, study.device, *counts, asked.usd_per_chip_hour, peak)
    return TrainingRun(study, plans, files_of(asked), batch)


def batch_of(asked: LanguageOptions) -> Batch:
    """Return the sequences of a training step.

    Raises:
        UserError: they are not written as they should be, or an option about other steps is given as well.
    """
    given = [name for name in _APART if getattr(asked, name, None)]
    if given:
        raise UserError(f"--train: found --{given[0]}, which is about other steps (leave one of them out)")
    found = _BATCH.fullmatch(asked.train or "")
    sequences, length = map(int, found.groups()) if found else (0, 0)
    if not 1 <= sequences <= LARGEST or not 2 <= length <= LARGEST:
        raise UserError(f"--train: found {(asked.train or '')[:40]!r} against BATCHxLENGTH, such as 1024x2048")
    return Batch("train", (Sequences(0, length, sequences, head_rows=length),))


def _check_context(model: Model, batch: Batch) -> None:
    if model.most_context and batch.longest > model.most_context:
        against = f"at most {model.most_context} of {model.name}"
        raise UserError(f"--train: found sequences of {batch.longest} tokens against {against}")
