"""Serving plans of a language model: what ``dfcompile llm --serve`` prints."""

import math
import re

from dfcompile.api.language_models import request_of
from dfcompile.errors import UserError
from dfcompile.language_models.planner import Demand, Plan, plans
from dfcompile.language_models.steps.batch import LARGEST, Batch
from dfcompile.language_models.study import Study, case_of, study_of
from dfcompile.options.language_models import LanguageOptions
from dfcompile.report.text_tables import Column, Table, folded, listed, page

_DEMAND = re.compile(r"(\d{1,15})x(\d{1,15}):(\d{1,15})", re.ASCII)
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s)", re.ASCII)
_APART = ("prefill", "decode", "chunked", "train", "sweep", "map", "degrees")


def plans_page(asked: LanguageOptions, width: int, *, verbose: bool) -> str:
    """Return the plans as a table, fastest tokens first, and what they rest on.

    Raises:
        UserError: an option is not written as it should be, or one that is about single steps is given as well.
        InfeasibleError: no plan holds the model, or none keeps the limits.
    """
    demand = demand_of(asked)
    request = request_of(asked)
    study = study_of(request)
    if study.model.most_context and demand.prompt + demand.answer > study.model.most_context:
        context = f"a context of {demand.prompt + demand.answer} tokens against at most {study.model.most_context}"
        raise UserError(f"--serve: found {context} of {study.model.name}")
    found = plans(case_of(study, Batch("none", ())), demand, request.chips)
    lines = [line for text in _heading(study, demand, asked) for line in folded(text, width, "  ")]
    lines += ["", *_table(found, asked.usd_per_chip_hour).lines(width)]
    notes = (*study.notes, *_NOTES)
    lines += listed("warnings", study.warnings, width)
    lines += listed("assumptions", notes, width) if verbose else [f"{len(notes)} assumptions: -v lists them"]
    return page(lines)


_NOTES = (
    "users ask anew as soon as their answer is complete, spread in time; lengths are the same for all",
    "the time to the first token has no part for the server in front of the model",
    "caches hold whole answers of all users; contexts are taken in the middle of answers",
    "contexts of a sequence are not split over chips",
)


def demand_of(asked: LanguageOptions) -> Demand:
    """Return users, lengths and limits.

    Raises:
        UserError: one is not written as it should be, or an option about single steps is given as well.
    """
    given = [name for name in _APART if getattr(asked, name, None)]
    if given:
        raise UserError(f"--serve: found --{given[0]}, which is about single steps (leave one of them out)")
    found = _DEMAND.fullmatch(asked.serve or "")
    counts = tuple(map(int, found.groups())) if found else ()
    if not counts or not all(1 <= count <= LARGEST for count in counts):
        raise UserError(f"--serve: found {(asked.serve or '')[:40]!r} against USERSxPROMPT:ANSWER, such as 64x4096:512")
    users, prompt, answer = counts
    return Demand(users, prompt, answer, ttft_s=_seconds("--ttft", asked.ttft), tpot_s=_seconds("--tpot", asked.tpot))


def _seconds(option: str, text: str) -> float:
    if not text:
        return math.inf
    found = _TIME.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise UserError(f"{option}: found {text[:40]!r} against a time above 0, such as 500ms or 2s")
    return float(found[1]) * (1e-3 if found[2] == "ms" else 1.0)


def _heading(study: Study, demand: Demand, asked: LanguageOptions) -> list[str]:
    limits = [f"{name} at most {limit}" for name, limit in (("TTFT", asked.ttft), ("TPOT", asked.tpot)) if limit]
    users = f"{demand.users} users at once, prompts of {demand.prompt} and answers of {demand.answer} tokens"
    return [
        f"{study.model.name} on {study.device.name}, up to {max(study.request.chips)} chips",
        f"{users}; {', '.join(limits) or 'no limits'}; counted by {study.request.time}",
    ]


def _table(found: tuple[Plan, ...], usd_per_chip_hour: float) -> Table:
    def column(heading: str, values: list[float]) -> Column:
        return Column(heading, tuple(f"{value:,.4g}" for value in values))

    names = Column("degrees", tuple(plan.degrees.name for plan in found), is_text=True)
    read = Column("prompts", tuple(plan.name for plan in found), is_text=True)
    columns = [
        Column("users per\nreplica", tuple(str(plan.load.users) for plan in found)),
        column("TTFT\nms", [1e3 * plan.served.ttft_s for plan in found]),
        column("TPOT\nms", [1e3 * plan.served.tpot_s for plan in found]),
        column("tokens/s\nper chip", [plan.per_chip for plan in found]),
        column("tokens/s\nper user", [plan.tokens_per_s / (plan.load.users * plan.degrees.data) for plan in found]),
    ]
    if usd_per_chip_hour:
        columns.append(column("USD per\nM tokens", [usd_per_chip_hour / 3600 / plan.per_chip * 1e6 for plan in found]))
    return Table("plans", (names, read), tuple(columns))
