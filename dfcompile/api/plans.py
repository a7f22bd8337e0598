"""Serving and training plans of a language model: what ``dfcompile llm --serve`` and ``--train`` print."""

import math
import re
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from dfcompile.api.language_models import files_of, request_of
from dfcompile.api.runs import Shown
from dfcompile.errors import UserError
from dfcompile.language_models.model import Model
from dfcompile.language_models.parallel.deployment import NOTHING, Case
from dfcompile.language_models.parallel.training import training_plans
from dfcompile.language_models.planner import Demand, plans
from dfcompile.language_models.serving import Drafts, Lengths
from dfcompile.language_models.steps.batch import LARGEST, Batch, Sequences
from dfcompile.language_models.steps.kernel import Fusion
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.steps.training_kernels import Recompute, TrainingChoices
from dfcompile.language_models.study import Study, case_of, study_of
from dfcompile.options.language_models import LanguageOptions
from dfcompile.options.numbers import read_real
from dfcompile.records import replace
from dfcompile.report.columns import table_columns
from dfcompile.report.language_models.figures import PlanFigures, TrainingFigures, plan_figures, training_figures
from dfcompile.report.language_models.tables import kernel_table
from dfcompile.report.plain_values import Json, rows_of, text_names, to_record
from dfcompile.report.text_tables import Table, binary, folded, listed, page


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


_DEMAND = re.compile(r"(\d{1,15})x(.+)", re.ASCII)
_LENGTHS = re.compile(r"(\d{1,15}):(\d{1,15})(?:\*(\d{1,9}))?", re.ASCII)
_DRAFTS = re.compile(r"(\d{1,3}):([\d.]{1,20})(?::(.+))?", re.ASCII)
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s)", re.ASCII)
_SERVING_NOTES = (
    "users ask anew as soon as their answer is complete, spread in time; nobody waits by chance",
    "of several lengths, means over requests are counted",
    "the time to the first token has no part for the server in front of the model",
    "caches hold whole answers of all users; contexts are taken in the middle of answers",
    "contexts of a sequence are not split over chips",
    "where other chips read prompts, what they cached is sent afterwards, each chip's part over its slowest link",
)
MOST_DRAFTED = 64

SERVING_FORMAT = "dfcompile-serving-plans/1"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ServingRun(PlannedRun):
    """Serving plans of a model, of which none has both more tokens per chip and less time per token; fastest first.

    Attributes:
        demand: users, lengths and limits.
    """

    plans: tuple[PlanFigures, ...]
    demand: Demand

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures rest on."""
        return (*self.study.notes, *_SERVING_NOTES)

    @property
    def _heading(self) -> tuple[str, ...]:
        study, demand, asked = self.study, self.demand, self.study.request.options
        limits = [f"{name} at most {limit}" for name, limit in (("TTFT", asked.ttft), ("TPOT", asked.tpot)) if limit]
        lengths = f"prompts of {demand.prompt} and answers of {demand.answer} tokens"
        if demand.kinds:
            listed_kinds = ", ".join(f"{kind.prompt}:{kind.answer} ({kind.weight})" for kind in demand.kinds)
            lengths = f"prompts and answers of {listed_kinds} tokens"
        if demand.cached:
            lengths += f", of which {demand.cached} are cached"
        drafted = f"; {demand.drafts.tokens:.2f} tokens per step by drafts" if demand.drafts.length else ""
        counted = f"{', '.join(limits) or 'no limits'}; counted by {study.request.time.value}"
        states, of_token = study.state_bytes_per_sequence, f"{study.kv_bytes_per_token:,} bytes per token"
        return (
            f"{study.model.name} on {study.device.name}, up to {max(study.request.chips)} chips",
            f"{demand.users} users at once, {lengths}{drafted}; {counted}",
            *((f"a user's cache: {of_token}, and {binary(states)} however long it is",) if states else ()),
        )

    def _tables(self, width: int, *, verbose: bool) -> list[str]:  # noqa: ARG002  # one table tells all
        names, read, *columns = table_columns("plans", self.plans)
        return Table("plans", (names, read), tuple(columns)).lines(width)

    def to_record(self) -> dict[str, Json]:
        """Return the plans as plain values."""
        demand = self.demand
        kinds = demand.kinds or (Lengths(demand.prompt, demand.answer),)
        return self._record(
            SERVING_FORMAT,
            users=demand.users,
            lengths=[{"prompt": kind.prompt, "answer": kind.answer, "weight": kind.weight} for kind in kinds],
            cached_tokens=demand.cached,
            kv_bytes_per_token=self.study.kv_bytes_per_token,
            state_bytes_per_sequence=self.study.state_bytes_per_sequence,
            tokens_per_step=demand.drafts.tokens,
        )


def serving_run(asked: LanguageOptions) -> ServingRun:
    """Return serving plans, fastest tokens first.

    Raises:
        UserError: an option is not written as it should be, or one that is about single steps is given as well.
        InfeasibleError: no plan holds the model, or none keeps the limits.
    """
    demand = demand_of(asked)
    request = request_of(asked)
    study = study_of(request)
    longest = max(kind.prompt + kind.answer for kind in demand.kinds or (Lengths(demand.prompt, demand.answer),))
    if study.model.most_context and longest > study.model.most_context:
        context = f"a context of {longest} tokens against at most {study.model.most_context}"
        raise UserError(f"--serve: found {context} of {study.model.name}")
    found = plans(case_of(study, Batch("none", ())), demand, request.chips, _draft(asked))
    return ServingRun(study, plan_figures(found, asked.usd_per_chip_hour), files_of(asked), demand)


def demand_of(asked: LanguageOptions) -> Demand:
    """Return users, lengths and limits.

    Raises:
        UserError: one is not written as it should be, or an option about single steps is given as well.
    """
    _reject_steps(asked, "--serve", "single steps", ("train", "sweep", "map", "degrees"))
    text = asked.serve or ""
    found = _DEMAND.fullmatch(text)
    each = [_LENGTHS.fullmatch(part.strip()) for part in found[2].split(",")] if found else []
    kinds = tuple(Lengths(int(one[1]), int(one[2]), int(one[3] or 1)) for one in each if one is not None)
    counts = [count for kind in kinds for count in (kind.prompt, kind.answer, kind.weight)]
    if found is None or not kinds or len(kinds) < len(each) or not all(1 <= count <= LARGEST for count in counts):
        raise UserError(f"--serve: found {text[:40]!r} against USERSxPROMPT:ANSWER, such as 64x4096:512")
    users, cached = int(found[1]), asked.shared_prefix
    shortest = min(kind.prompt for kind in kinds)
    if not 1 <= users <= LARGEST:
        raise UserError(f"--serve: found {users} users against 1 to 2^50")
    if cached >= shortest:
        raise UserError(f"--serve: found a shared prefix of {cached} tokens against prompts of {shortest}")
    return Demand(
        users,
        max(kind.prompt for kind in kinds),
        max(kind.answer for kind in kinds),
        ttft_s=_seconds("--ttft", asked.ttft),
        tpot_s=_seconds("--tpot", asked.tpot),
        kinds=kinds if len(kinds) > 1 else (),
        cached=cached,
        drafts=_drafts(asked)[0],
    )


def _drafts(asked: LanguageOptions) -> tuple[Drafts, str]:
    """Return what is drafted, and the configuration of what drafts; empty: nothing that takes time.

    Raises:
        UserError: it is not written as it should be.
    """
    if asked.speculate is None:
        return Drafts(), ""
    found = _DRAFTS.fullmatch(asked.speculate)
    length, rate = (int(found[1]), read_real(found[2])) if found else (0, None)
    if found is None or rate is None or not 1 <= length <= MOST_DRAFTED or not 0 <= rate <= 1:
        against = f"LENGTH:RATE[:CONFIG], such as 4:0.7, a length of 1 to {MOST_DRAFTED} and a rate of 0 to 1"
        raise UserError(f"--speculate: found {asked.speculate[:40]!r} against {against}")
    return Drafts(length, float(rate)), found[3] or ""


def _draft(asked: LanguageOptions) -> Case | None:
    """Return the model that drafts, counted as the other one."""
    _, config = _drafts(asked)
    if not config:
        return None
    study = study_of(request_of(replace(asked, config=config, dtype="", offload="none")))
    return replace(case_of(study, Batch("none", ())), device=replace(study.device, capacity_bytes=0))


def _seconds(option: str, text: str) -> float:
    if not text:
        return math.inf
    found = _TIME.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise UserError(f"{option}: found {text[:40]!r} against a time above 0, such as 500ms or 2s")
    return float(found[1]) * (1e-3 if found[2] == "ms" else 1.0)


_BATCH = re.compile(r"(\d{1,15})x(\d{1,15})", re.ASCII)
_TRAINING_NOTES = (
    "the optimiser is Adam; weights and activations are of the dtype, gradients are summed in 4 bytes",
    "exchanges do not overlap with kernels",
    "activations: those that a gradient needs, once each; buffers of exchanges and of the allocator are not counted",
    "contexts of a sequence are not split over chips",
)
_INTERLEAVED = "--interleave: stages are cut as if each had one run of layers"

TRAINING_FORMAT = "dfcompile-training-plans/1"


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
        return (*self.study.notes, *_TRAINING_NOTES, *((_INTERLEAVED,) if runs else ()))

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
        return self._record(TRAINING_FORMAT, sequences=self.batch.sequences, tokens=self.batch.tokens)


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
    _reject_steps(asked, "--train", "other steps", ("sweep", "map"))
    found = _BATCH.fullmatch(asked.train or "")
    sequences, length = map(int, found.groups()) if found else (0, 0)
    if not 1 <= sequences <= LARGEST or not 2 <= length <= LARGEST:
        raise UserError(f"--train: found {(asked.train or '')[:40]!r} against BATCHxLENGTH, such as 1024x2048")
    return Batch("train", (Sequences(0, length, sequences, head_rows=length),))


def _check_context(model: Model, batch: Batch) -> None:
    if model.most_context and batch.longest > model.most_context:
        against = f"at most {model.most_context} of {model.name}"
        raise UserError(f"--train: found sequences of {batch.longest} tokens against {against}")


def _reject_steps(asked: LanguageOptions, option: str, steps: str, others: tuple[str, ...]) -> None:
    for name in ("prefill", "decode", "chunked", *others):
        if getattr(asked, name, None):
            raise UserError(f"{option}: found --{name}, which is about {steps} (leave one of them out)")
