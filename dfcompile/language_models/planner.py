"""A serving plan: degrees of parallelism, and how prompts are read, for users at once under limits.

Every choice is counted but those that a bound excludes: no way of batching makes later tokens faster than steps of one
user alone, so that degrees whose steps of one user exceed the limit are left out with all of their chunks.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.parallel.degrees import Degrees, all_degrees
from dfcompile.language_models.parallel.deployment import Case, Deployments
from dfcompile.language_models.serving import Batching, Load, Seconds, Served, served
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.records import replace

CHUNKS = (512, 1024, 2048, 4096, 8192, 16384)  # tokens of a step that are tried


class Demand(Struct, frozen=True):
    """What is asked of a machine.

    Attributes:
        users: at once, of all replicas together.
        prompt: tokens of each prompt.
        answer: tokens of each answer.
        ttft_s: most seconds to the first token.
        tpot_s: most seconds between two later tokens.
    """

    users: int
    prompt: int
    answer: int
    ttft_s: float = math.inf
    tpot_s: float = math.inf


class Plan(Struct, frozen=True):
    """A choice and what it brings.

    Attributes:
        degrees: of all chips.
        load: of one replica.
        served: what its users see.
        tokens_per_s: of answers, of all chips.
    """

    degrees: Degrees
    load: Load
    served: Served
    tokens_per_s: float

    @property
    def per_chip(self) -> float:
        """Tokens of answers per second and chip."""
        return self.tokens_per_s / self.degrees.chips

    @property
    def name(self) -> str:
        """How prompts are read."""
        return "apart" if self.load.batching is Batching.APART else f"chunks of {self.load.chunk}"

    def is_within(self, demand: Demand) -> bool:
        """Whether it keeps the limits."""
        return self.served.ttft_s <= demand.ttft_s and self.served.tpot_s <= demand.tpot_s

    @property
    def key(self) -> tuple[float, ...]:
        """By which ties are broken: fewer groups, then smaller chunks."""
        one = self.degrees
        return one.pipeline, one.expert, one.tensor, one.data, one.micro_batches, self.load.chunk


def loads(demand: Demand, degrees: Degrees) -> Iterator[Load]:
    """Yield the ways of reading prompts on a replica, smaller chunks first; the last one is apart."""
    users = -(-demand.users // degrees.data)
    for chunk in CHUNKS:
        if chunk >= users and chunk < 2 * max(CHUNKS[0], demand.prompt + users):
            yield Load(users, demand.prompt, demand.answer, Batching.MIXED, chunk)
    yield Load(users, demand.prompt, demand.answer, Batching.APART, max(demand.prompt, 1))


def seconds_on(case: Case, degrees: Degrees) -> Seconds:
    """Return what times a step of every replica at once, each with the same sequences."""

    @cache
    def seconds(batch: Batch) -> float:
        groups = tuple(replace(group, count=group.count * degrees.data) for group in batch.groups)
        asked = replace(case, batch=replace(batch, groups=groups))
        return Deployments(asked, degrees.chips).deployed(degrees).exec_s

    return seconds


def degrees_of(case: Case, demand: Demand, chips: Sequence[int]) -> Iterator[Degrees]:
    """Yield the degrees that are tried: all but those that split the context of a sequence."""
    model = case.model
    for count in chips:
        choices = all_degrees(count, experts=model.most_experts, layers=len(model.layers), sequences=demand.users)
        yield from (one for one in choices if one.sequence == 1)


def plans(case: Case, demand: Demand, chips: Sequence[int]) -> tuple[Plan, ...]:
    """Return the plans within limits of which none is better in throughput per chip and time per token; fastest first.

    Args:
        case: model, device and how it is counted; its batch is not looked at.
        demand: users, lengths and limits.
        chips: numbers of chips that may be used.

    Raises:
        InfeasibleError: no degrees hold the model and all caches, or none keep the limits; the message has the nearest.
    """
    found: list[Plan] = []
    nearest: InfeasibleError | None = None
    least = math.inf
    for degrees in degrees_of(case, demand, chips):
        seconds = seconds_on(case, degrees)
        try:
            _check_held(seconds, demand, degrees)
            alone = seconds(Batch("alone", (Sequences(demand.prompt + demand.answer // 2 - 1, 1),)))
            if alone > demand.tpot_s:
                least = min(least, alone)
                continue
            for load in loads(demand, degrees):
                plan = planned(load, seconds, degrees)
                least = min(least, plan.served.tpot_s)
                if plan.is_within(demand):
                    found.append(plan)
        except InfeasibleError as error:
            nearest = error if nearest is None else min(nearest, error, key=lambda known: known.enough)
    if found:
        return pareto(found)
    if least < math.inf:
        asked = {"--ttft": demand.ttft_s, "--tpot": demand.tpot_s}
        limits = " ".join(f"{name} {limit * 1e3:g}ms" for name, limit in asked.items() if limit < math.inf)
        raise InfeasibleError(f"{limits}: found {least * 1e3:.1f} ms per token at least for {demand.users} users")
    raise nearest or InfeasibleError("degrees: found none for so many chips")


def planned(load: Load, seconds: Seconds, degrees: Degrees) -> Plan:
    """Return the plan of some degrees and a way of reading prompts."""
    one = served(load, seconds)
    return Plan(degrees, load, one, one.tokens_per_s(load) * degrees.data)


def _check_held(seconds: Seconds, demand: Demand, degrees: Degrees) -> None:
    """Check that all caches fit when all answers are nearly complete.

    Raises:
        InfeasibleError: they do not.
    """
    users = -(-demand.users // degrees.data)
    seconds(Batch("held", (Sequences(demand.prompt + demand.answer - 1, 1, users),)))


def pareto(found: Sequence[Plan]) -> tuple[Plan, ...]:
    """Return the plans of which none has both more tokens per chip and less time per token."""
    kept: list[Plan] = []
    for one in sorted(found, key=lambda plan: (plan.served.tpot_s, -plan.per_chip, plan.served.ttft_s, plan.key)):
        if not kept or one.per_chip > kept[-1].per_chip:
            kept.append(one)
    return tuple(kept)
