"""A serving plan: degrees of parallelism, and how prompts are read, for users at once under limits.

Every choice is counted but those that a bound excludes: no way of batching makes later tokens faster than steps of one
user alone, so that degrees whose steps of one user exceed the limit are left out with all of their chunks.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.energy import energy_of, is_known
from dfcompile.language_models.parallel.degrees import Degrees, Impossible, all_degrees, divisors
from dfcompile.language_models.parallel.deployment import Case, Deployment, Deployments
from dfcompile.language_models.serving import (
    Batching,
    Drafts,
    Lengths,
    Load,
    Seconds,
    Served,
    decodes,
    readings,
    served,
    served_separately,
    total,
)
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.records import replace

CHUNKS = (512, 1024, 2048, 4096, 8192, 16384)  # tokens of a step that are tried
PARTS = 8  # of a machine, of which some read prompts for the others


class Demand(Struct, frozen=True):
    """What is asked of a machine.

    Attributes:
        users: at once, of all replicas together.
        prompt: tokens of each prompt; of several lengths of the longest.
        answer: tokens of each answer; of several lengths of the longest.
        ttft_s: most seconds to the first token.
        tpot_s: most seconds between two later tokens.
        kinds: of requests, if they have several lengths.
        cached: tokens at the start of every prompt that are in the cache already.
        drafts: of each step.
    """

    users: int
    prompt: int
    answer: int
    ttft_s: float = math.inf
    tpot_s: float = math.inf
    kinds: tuple[Lengths, ...] = ()
    cached: int = 0
    drafts: Drafts = Drafts()

    def load(self, users: int, batching: Batching, chunk: int) -> Load:
        """Return what a replica with so many users serves."""
        return Load(
            users, self.prompt, self.answer, batching, chunk,
            kinds=self.kinds, cached=self.cached, drafts=self.drafts,
        )  # fmt: skip


class Plan(Struct, frozen=True):
    """A choice and what it brings.

    Attributes:
        degrees: of all chips, but those that only read prompts.
        load: of one replica.
        served: what its users see.
        tokens_per_s: of answers, of all chips.
        readers: degrees of the chips that only read prompts, where there are any.
        energy_j_per_token: of answers, of all chips, where the device says what costs energy.
    """

    degrees: Degrees
    load: Load
    served: Served
    tokens_per_s: float
    readers: Degrees | None = None
    energy_j_per_token: float | None = None

    @property
    def chips(self) -> int:
        """All chips."""
        return self.degrees.chips + (self.readers.chips if self.readers is not None else 0)

    @property
    def per_chip(self) -> float:
        """Tokens of answers per second and chip."""
        return self.tokens_per_s / self.chips

    @property
    def name(self) -> str:
        """How prompts are read."""
        if self.readers is not None:
            return f"on other chips: {self.readers.name}"
        return "apart" if self.load.batching is Batching.APART else f"chunks of {self.load.chunk}"

    def is_within(self, demand: Demand) -> bool:
        """Whether it keeps the limits."""
        return self.served.ttft_s <= demand.ttft_s and self.served.tpot_s <= demand.tpot_s

    @property
    def key(self) -> tuple[float, ...]:
        """By which ties are broken: fewer groups, then smaller chunks."""
        one, readers = self.degrees, self.readers.chips if self.readers is not None else 0
        return one.pipeline, one.expert, one.tensor, one.data, one.micro_batches, self.load.chunk, readers


def loads(demand: Demand, degrees: Degrees) -> Iterator[Load]:
    """Yield the ways of reading prompts on a replica, smaller chunks first; the last one is apart."""
    users = -(-demand.users // degrees.data)
    for chunk in CHUNKS:
        least = users * (1 + demand.drafts.length)
        if chunk >= least and chunk < 2 * max(CHUNKS[0], demand.prompt + least):
            yield demand.load(users, Batching.MIXED, chunk)
    yield demand.load(users, Batching.APART, max(demand.prompt, 1))


class Cost(Struct, frozen=True):
    """What a step takes: seconds, and joules of all chips, 0 where the device does not say what costs energy."""

    seconds: float
    joules: float


def costs_on(case: Case, degrees: Degrees, draft: Case | None = None) -> Callable[[Batch], Cost]:
    """Return what says the cost of a step of every replica at once, each with the same sequences.

    A model that drafts runs before it on the same chips, split the same way: a step per token that it drafts, and one
    that reads the same prompts. What it holds, the other one cannot.
    """

    @cache
    def cost(batch: Batch) -> Cost:
        groups = tuple(replace(group, count=group.count * degrees.data) for group in batch.groups)
        asked = replace(case, batch=replace(batch, groups=groups))
        if draft is None:
            return _cost(asked, Deployments(asked, degrees.chips).deployed(degrees))
        drafting = tuple(replace(group, new=group.new - group.drafted, head_rows=1, drafted=0) for group in groups)
        before = replace(draft, batch=replace(batch, groups=drafting))
        found = Deployments(before, degrees.chips).deployed(degrees)
        left = max(1, case.device.capacity_bytes - found.held_bytes) if case.device.capacity_bytes else 0
        asked = replace(asked, device=replace(case.device, capacity_bytes=left))
        once, one = _cost(before, found), _cost(asked, Deployments(asked, degrees.chips).deployed(degrees))
        drafted = max(1, *(group.drafted for group in groups))
        return Cost(one.seconds + drafted * once.seconds, one.joules + drafted * once.joules)

    return cost


def _cost(case: Case, one: Deployment) -> Cost:
    if not is_known(case.device):
        return Cost(one.exec_s, 0.0)
    chips, parts = one.degrees.chips, one.degrees.micro_batches
    energy = energy_of(one.kernels, case.device, one.exec_s, chips, parts, one.link_bytes)
    return Cost(energy.exec_s, energy.total_j)


def degrees_of(case: Case, demand: Demand, chips: Sequence[int]) -> Iterator[Degrees]:
    """Yield the degrees that are tried: all but those that split the context of a sequence."""
    model = case.model
    for count in chips:
        choices = all_degrees(count, experts=model.most_experts, layers=len(model.layers), sequences=demand.users)
        yield from (one for one in choices if one.sequence == 1)


class Readers(Struct, frozen=True):
    """Chips that read prompts for others, with the mean seconds to read one and to send what it cached."""

    degrees: Degrees
    reading_s: float
    sending_s: float


class Planning:
    """The search for the plans of one demand; what plans have in common is counted once.

    Args:
        case: model, device and how it is counted; its batch is not looked at.
        demand: users, lengths and limits.
        draft: the same for a model that drafts.
    """

    def __init__(self, case: Case, demand: Demand, draft: Case | None = None) -> None:
        self._case = case
        self._demand = demand
        self._costs = cache(lambda degrees: costs_on(case, degrees, draft))
        self._soonest = cache(self._soonest_reader)
        self._impossible = Impossible()
        self._least = math.inf

    def plans(self, chips: Sequence[int]) -> tuple[Plan, ...]:
        """Return the plans within limits of which none is better in throughput per chip and time per token.

        Raises:
            InfeasibleError: no degrees hold the model and all caches, or none keep the limits; the message has the
                nearest.
        """
        demand = self._demand
        found = [plan for plan in (*self._together(chips), *self._separate(chips)) if plan.is_within(demand)]
        if found:
            return tuple(map(self._with_energy, pareto(found)))
        if self._least < math.inf:
            asked = {"--ttft": demand.ttft_s, "--tpot": demand.tpot_s}
            limits = " ".join(f"{name} {limit * 1e3:g}ms" for name, limit in asked.items() if limit < math.inf)
            least = f"{self._least * 1e3:.1f} ms per token at least for {demand.users} users"
            raise InfeasibleError(f"{limits}: found {least}")
        raise self._impossible.error

    def _seconds(self, degrees: Degrees) -> Seconds:
        costs = self._costs(degrees)
        return lambda batch: costs(batch).seconds

    def _joules(self, degrees: Degrees) -> Callable[[Batch], float]:
        costs = self._costs(degrees)
        return lambda batch: costs(batch).joules

    def _with_energy(self, plan: Plan) -> Plan:
        """Return a plan with its joules per token, if the device says what costs energy.

        Chips that read prompts take their idle power while they wait.
        """
        device, load = self._case.device, plan.load
        if not is_known(device):
            return plan
        users, spent = load.users * plan.degrees.data, total(plan.served.steps, self._joules(plan.degrees))
        tokens = users * load.mean(lambda kind: kind.answer)
        if plan.readers is not None:
            one = replace(plan.readers, data=1)
            read = readings(self._demand.load(1, Batching.SEPARATE, self._demand.prompt), 0)
            busy = users * total(read, self._seconds(one)) * one.chips
            waited = max(0.0, tokens / plan.tokens_per_s * plan.readers.chips - busy)
            spent += users * total(read, self._joules(one)) + waited * device.idle_w
        return replace(plan, energy_j_per_token=spent / tokens)

    def _together(self, chips: Sequence[int]) -> Iterator[Plan]:
        """Yield plans in which every replica reads the prompts of its users."""
        for degrees in degrees_of(self._case, self._demand, chips):
            seconds = self._seconds(degrees)
            with self._impossible:
                if not self._is_possible(degrees):
                    continue
                for load in loads(self._demand, degrees):
                    plan = planned(load, seconds, degrees)
                    self._least = min(self._least, plan.served.tpot_s)
                    yield plan

    def _separate(self, chips: Sequence[int]) -> Iterator[Plan]:
        """Yield plans in which a part of the chips reads prompts for the others."""
        for reading, answering in ((part, whole - part) for whole in chips for part in parts_of(whole)):
            readers = tuple(self._readers_on(reading))
            if not readers:
                continue
            for degrees in degrees_of(self._case, self._demand, (answering,)):
                with self._impossible:
                    if not self._is_possible(degrees):
                        continue
                    for one in readers:
                        plan = self._with_readers(degrees, one)
                        self._least = min(self._least, plan.served.tpot_s)
                        yield plan

    def _with_readers(self, degrees: Degrees, readers: Readers) -> Plan:
        demand = self._demand
        load = demand.load(-(-demand.users // degrees.data), Batching.SEPARATE, demand.prompt)
        replicas = readers.degrees.data / degrees.data
        one = served_separately(load, self._seconds(degrees), readers.reading_s, readers.sending_s, replicas)
        return Plan(degrees, load, one, one.tokens_per_s(load) * degrees.data, readers.degrees)

    def _readers_on(self, chips: int) -> Iterator[Readers]:
        """Yield how so many chips read prompts: for each number of replicas the way that brings them soonest."""
        for replica in divisors(chips):
            found = self._soonest(replica)
            if found is not None:
                yield replace(found, degrees=replace(found.degrees, data=chips // replica))

    def _soonest_reader(self, chips: int) -> Readers | None:
        """Return how one replica on so many chips reads and sends a prompt in the least time; none: it does not fit."""
        load = self._demand.load(1, Batching.SEPARATE, self._demand.prompt)
        best: Readers | None = None
        for degrees in degrees_of(self._case, replace(self._demand, users=1), (chips,)):
            with self._impossible:
                one = Readers(degrees, total(readings(load, 0), self._seconds(degrees)), self._sending_s(degrees))
                if best is None or one.reading_s + one.sending_s < best.reading_s + best.sending_s:
                    best = one
        return best

    def _sending_s(self, readers: Degrees) -> float:
        """Return the mean seconds until what a prompt cached is elsewhere: each chip's part over its slowest link."""
        device, load = self._case.device, self._demand.load(1, Batching.SEPARATE, self._demand.prompt)
        if not device.links:
            raise InfeasibleError(f"system {device.name!r}: found no links between chips")

        def sent(kind: Lengths) -> float:
            batch = Batch("sent", (Sequences(0, kind.prompt - load.cached),))
            choices = replace(self._case.choices, shared_prefix=0)
            held = Deployments(replace(self._case, batch=batch, choices=choices), readers.chips).deployed(readers)
            return held.kv_bytes + held.offload_bytes

        return device.link_latency_s + load.mean(sent) / min(link.bytes_per_s for link in device.links)

    def _is_possible(self, degrees: Degrees) -> bool:
        """Whether one user alone keeps the limit on later tokens.

        Raises:
            InfeasibleError: caches do not fit when all answers are nearly complete.
        """
        demand, seconds = self._demand, self._seconds(degrees)
        load = demand.load(-(-demand.users // degrees.data), Batching.APART, max(demand.prompt, 1))
        seconds(Batch("held", decodes(load, load.users, at_end=True)))
        alone = (decodes(replace(load, users=1, kinds=(kind,)), 1) for kind in load.requests)
        least = min(seconds(Batch("alone", groups)) for groups in alone) / demand.drafts.tokens
        if least > demand.tpot_s:
            self._least = min(self._least, least)
            return False
        return True


def plans(case: Case, demand: Demand, chips: Sequence[int], draft: Case | None = None) -> tuple[Plan, ...]:
    """Return the plans within limits of which none is better in throughput per chip and time per token; fastest first.

    Args:
        case: model, device and how it is counted; its batch is not looked at.
        demand: users, lengths and limits.
        chips: numbers of chips that may be used.
        draft: the same for a model that drafts.

    Raises:
        InfeasibleError: no degrees hold the model and all caches, or none keep the limits; the message has the nearest.
    """
    return Planning(case, demand, draft).plans(chips)


def parts_of(chips: int) -> tuple[int, ...]:
    """Return how many of some chips may read prompts for the others: eighths of them.

    >>> parts_of(64), parts_of(4), parts_of(1)
    ((8, 16, 24, 32, 40, 48, 56), (1, 2, 3), ())
    """
    step = max(1, chips // PARTS)
    return tuple(range(step, chips, step))


def planned(load: Load, seconds: Seconds, degrees: Degrees) -> Plan:
    """Return the plan of some degrees and a way of reading prompts."""
    one = served(load, seconds)
    return Plan(degrees, load, one, one.tokens_per_s(load) * degrees.data)


def pareto(found: Sequence[Plan]) -> tuple[Plan, ...]:
    """Return the plans of which none has both more tokens per chip and less time per token."""
    kept: list[Plan] = []
    for one in sorted(found, key=lambda plan: (plan.served.tpot_s, -plan.per_chip, plan.served.ttft_s, plan.key)):
        if not kept or one.per_chip > kept[-1].per_chip:
            kept.append(one)
    return tuple(kept)
