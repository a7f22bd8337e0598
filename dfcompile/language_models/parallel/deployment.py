"""A step on several chips: what every chip computes, what they exchange, and whether all fits."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.footprint import embedding_bytes, head_bytes, layer_kv_bytes, layer_weight_bytes
from dfcompile.language_models.formats import Precision
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.model import Attention, Experts, Layer, Model
from dfcompile.language_models.parallel import degrees as sharing
from dfcompile.language_models.parallel.degrees import Collectives, Degrees, Group
from dfcompile.language_models.steps.batch import Batch, live
from dfcompile.language_models.steps.kernel import Kernel, StepChoices
from dfcompile.language_models.steps.step import WHOLE, ends_kernels, layer_kernels
from dfcompile.language_models.times.calibrated import AllReduce
from dfcompile.language_models.times.step_time import StepTime, Timer, Transfers, timed_step
from dfcompile.records import replace


@lru_cache(maxsize=4096)
def balanced(costs: tuple[float, ...], stages: int) -> tuple[int, ...]:
    """Return where stages end, so that the largest sum of a run of costs is least; no stage is empty.

    The largest sum is searched among all sums of runs that halving leaves; ends are as late as it allows.
    """
    sums = [0.0, *accumulate(costs)]
    low, high = max(costs), sums[-1]
    for _ in range(100):
        middle = (low + high) / 2
        if low >= high or middle in (low, high):
            break
        is_enough = _ends(sums, stages, middle)[-1] == len(costs)
        low, high = (low, middle) if is_enough else (middle, high)
    return _ends(sums, stages, high)


def _ends(sums: Sequence[float], stages: int, most: float) -> tuple[int, ...]:
    ends, at, layers = [], 0, len(sums) - 1
    for stage in range(stages):
        left = stages - stage - 1
        end = bisect_right(sums, sums[at] + most * (1 + 1e-12), at + 1) - 1
        at = min(max(end, at + 1), layers - left)
        ends.append(at)
    return tuple(ends)


NOTHING = Fraction(0)
Held = tuple[int, int]  # bytes of weights and of caches
_GIB = 2**30


def offloaded_kernels(kernels: Sequence[Kernel], share: Fraction) -> tuple[Kernel, ...]:
    """Return kernels of which a share of the bytes of the cache crosses the link: what is read of it, what is added."""
    if not share:
        return tuple(kernels)
    cached = ((kernel, kernel.kv_read_bytes + kernel.kv_write_bytes) for kernel in kernels)
    return tuple(replace(kernel, offload_bytes=part_of(amount, share)) for kernel, amount in cached)


def part_of(amount: int, share: Fraction) -> int:
    """Return a share of some bytes, rounded up."""
    return -(-amount * share.numerator // share.denominator)


def least_share(stages: Sequence[Held], capacity: int) -> Fraction:
    """Return the least share of caches that lets every stage fit, at most all; 0 where the capacity is not known."""
    if not capacity:
        return NOTHING
    needs = [Fraction(weights + caches - capacity, caches) for weights, caches in stages if caches]
    return min(Fraction(1), max([NOTHING, *needs]))


class Case(Struct, frozen=True):
    """What is asked: a model, a batch, a device and how it is counted.

    Attributes:
        model: that is run.
        batch: of all chips.
        device: one chip.
        precision: formats.
        choices: how the step is counted.
        timer: how kernels are timed.
        fitted: all-reduce, if it was measured.
        transfers: of the cache.
        block: tokens of a block of the cache.
        offload: share of caches beside the chip's own memory; None: as little as lets the step fit.
    """

    model: Model
    batch: Batch
    device: Device
    precision: Precision
    choices: StepChoices
    timer: Timer
    fitted: AllReduce | None = None
    transfers: Transfers = Transfers.ASYNC
    block: int = 1
    offload: Fraction | None = NOTHING


class Deployment(Struct, frozen=True):
    """A step under degrees of parallelism.

    Attributes:
        degrees: of parallelism.
        exec_s: from the first to the last token of the step; of decodes, between two tokens of a sequence.
        kernels: of the chip, with times of one micro-batch.
        compute_s: of the kernels of the slowest stage.
        exchange_s: of collectives of the slowest stage.
        stage_layers: of each stage.
        weight_bytes: of the fullest chip.
        kv_bytes: of the fullest chip, in its own memory.
        link_bytes: that a chip sends in the step.
        link_bytes_per_s: of all links of a chip together; 0 of one chip.
        offload: share of caches beside the chip's own memory.
        offload_bytes: of the fullest chip, there.
    """

    degrees: Degrees
    exec_s: float
    kernels: StepTime
    compute_s: float
    exchange_s: float
    stage_layers: tuple[int, ...]
    weight_bytes: int
    kv_bytes: int
    link_bytes: float
    link_bytes_per_s: float
    offload: Fraction
    offload_bytes: int

    @property
    def held_bytes(self) -> int:
        """Of the fullest chip."""
        return self.weight_bytes + self.kv_bytes


class _LayerCost(Struct, frozen=True):
    kernels: tuple[Kernel, ...]
    exec_s: float
    exchange_s: float
    link_bytes: float
    weight_bytes: int
    kv_bytes: int


class Deployments:
    """Deployments of one case; what two of them have in common is counted once."""

    def __init__(self, case: Case, chips: int) -> None:
        self._case = case
        self.links = sharing.used_links(case.device.links, chips, case.device.name)
        innermost = self.links[0].chips if self.links else 1
        self.collectives = Collectives(case.device.link_latency_s, case.fitted, innermost)
        self._costs = cache(self._layer_cost)

    def deployed(self, degrees: Degrees) -> Deployment:
        """Return the step under some degrees.

        Raises:
            InfeasibleError: a dimension does not divide, a group lies across the network, or memory does not suffice.
        """
        share = self._case.offload if self._case.offload is not None else NOTHING
        found, least = self._deployed(degrees, share)
        while self._case.offload is None and least > share:
            # Stages are cut by their times, which depend on the share: it grows until it is enough for its own stages.
            share, (found, least) = least, self._deployed(degrees, least)
        self._check_held(found)
        return found

    def _deployed(self, degrees: Degrees, share: Fraction) -> tuple[Deployment, Fraction]:
        """Return the step with a share of caches offloaded, and the share that its stages need."""
        case = self._case
        batch = sharing.share_of_batch(case.batch, degrees)
        by_layer = {kind.layer: self._costs(kind.layer, degrees, batch, share) for kind in case.model.kinds}
        costs = [by_layer[layer] for layer in case.model.layers]
        first, last = self._ends(degrees, batch)
        seconds = [cost.exec_s + cost.exchange_s for cost in costs]
        seconds[0] += first.exec_s
        seconds[-1] += last.exec_s + last.exchange_s
        runs = list(pairwise((0, *balanced(tuple(seconds), degrees.pipeline))))
        sent = self._sent_s(degrees, batch)
        stages = [math.fsum(seconds[start:end]) + sent for start, end in runs]
        held = []
        for start, end in runs:
            stage = [*costs[start:end], *([] if start else [first]), *([last] if end == len(costs) else [])]
            held.append((sum(cost.weight_bytes for cost in stage), sum(cost.kv_bytes for cost in stage)))
        away = [part_of(caches, share) for _, caches in held]
        here = [(weights, caches - out) for (weights, caches), out in zip(held, away, strict=True)]
        weights, caches = max(here, key=sum)
        start, end = runs[max(range(len(stages)), key=stages.__getitem__)]
        slow = costs[start:end]
        found = Deployment(
            degrees=degrees,
            exec_s=self._step_s(stages, degrees),
            kernels=self._timed(by_layer, slow, first, last),
            compute_s=math.fsum(cost.exec_s for cost in slow),
            exchange_s=math.fsum(cost.exchange_s for cost in slow) + last.exchange_s + sent,
            stage_layers=tuple(end - start for start, end in runs),
            weight_bytes=weights,
            kv_bytes=caches,
            link_bytes=degrees.micro_batches * (math.fsum(cost.link_bytes for cost in slow) + last.link_bytes),
            link_bytes_per_s=math.fsum(link.bytes_per_s for link in self.links),
            offload=share,
            offload_bytes=max(away),
        )
        return found, least_share(held, case.device.capacity_bytes)

    def _step_s(self, stages: Sequence[float], degrees: Degrees) -> float:
        """Return the seconds of a step: micro-batches follow each other.

        Of decodes the first micro-batch starts again when the last has begun and it is through; prompts pass once.
        """
        parts, once = degrees.micro_batches, math.fsum(stages)
        if parts == 1:
            return once
        if self._case.batch.is_decode:
            return max(once, parts * max(stages))
        return once + (parts - 1) * max(stages)

    def _layer_cost(self, layer: Layer, degrees: Degrees, batch: Batch, offload: Fraction) -> _LayerCost:
        case = self._case
        hidden, precision, choices = case.model.hidden, case.precision, case.choices
        share = sharing.share_of_layer(layer, degrees)
        experts = sharing.expert_share(layer.mlp, batch, degrees, choices) if isinstance(layer.mlp, Experts) else WHOLE
        made = offloaded_kernels(layer_kernels(share, hidden, batch, precision, choices, experts), offload)
        held = layer_weight_bytes(share, hidden, precision, ranks=degrees.expert, split=degrees.expert_split)
        kept = layer_kv_bytes(share, batch, precision, block=case.block, shared_prefix=choices.shared_prefix)
        exchanged = self.exchanges(layer, share, degrees, batch)
        return _LayerCost(made, self.time(made).exec_s, *exchanged, held, kept * degrees.micro_batches)

    def exchanges(self, layer: Layer, share: Layer, degrees: Degrees, batch: Batch) -> tuple[float, float]:
        """Return seconds and bytes of what a layer exchanges: sums over tensor groups, tokens to experts, caches.

        Mamba's time steps, keys and queries are sums over all channels as well.
        """
        case, seconds, sent = self._case, 0.0, 0.0
        amount = case.precision.activations.bytes_of(batch.tokens * case.model.hidden)
        spread = degrees.expert_group // degrees.tensor
        if isinstance(layer.mlp, Experts) and degrees.expert > 1 and spread > 1:
            read = case.precision.activations.bytes_of(batch.tokens * layer.mlp.read(case.model.hidden))
            routed = read * layer.mlp.chosen / math.gcd(degrees.tensor, degrees.expert)
            seconds += 2 * self.collectives.all_to_all(self.group(degrees.tensor, spread), routed * spread)
            sent += 2 * routed * (spread - 1) / spread
        seconds += layer.branches * self.collectives.all_reduce(self.group(1, degrees.tensor), amount)
        sent += 2 * layer.branches * amount * (degrees.tensor - 1) / degrees.tensor
        if layer.mixer is not None and layer.mixer.stepped:
            steps = case.precision.activations.bytes_of(batch.tokens * layer.mixer.stepped)
            seconds += self.collectives.all_reduce(self.group(1, degrees.tensor), steps)
            sent += 2 * steps * (degrees.tensor - 1) / degrees.tensor
        moved = self._context_bytes(share, batch, degrees)
        seconds += self.collectives.all_gather(self.group(degrees.tensor, degrees.sequence), moved)
        return seconds, sent + moved * (degrees.sequence - 1) / degrees.sequence

    def _context_bytes(self, share: Layer, batch: Batch, degrees: Degrees) -> float:
        """Bytes that chips of a sequence group show each other: keys and values of prompts, results of decodes."""
        case, attention, total = self._case, share.attention, 0
        if degrees.sequence == 1 or attention is None:
            return 0.0
        for group in batch.groups:
            if group.decodes:
                width = attention.v_dim if isinstance(attention, Attention) else attention.kv_rank
                results = group.count * attention.heads * (width + 2)
                total += case.precision.activations.bytes_of(results) * degrees.sequence
            else:
                context = live(attention.reach, group.past, group.new) * degrees.sequence
                total += case.precision.kv.bytes_of(context * group.count * attention.kv_elements)
        return float(total)

    def _ends(self, degrees: Degrees, batch: Batch) -> tuple[_LayerCost, _LayerCost]:
        """Return embedding and head of one chip."""
        case, chips = self._case, degrees.tensor
        before, after = ends_kernels(case.model, batch, case.precision, -(-case.model.vocabulary // chips))
        logits = case.precision.activations.bytes_of(batch.head_rows * case.model.vocabulary)
        gathered = self.collectives.all_gather(self.group(1, chips), logits) if logits else 0.0
        tables, matrix = self.end_bytes(degrees, case.precision)
        return (
            _LayerCost(before, self.time(before).exec_s, 0.0, 0.0, tables, 0),
            _LayerCost(after, self.time(after).exec_s, gathered, logits * (chips - 1) / chips, matrix, 0),
        )

    def end_bytes(self, degrees: Degrees, precision: Precision) -> tuple[int, int]:
        """Bytes of embedding and head of a chip; if they are one, the last of several stages has a copy."""
        model = self._case.model
        tables, matrix = (count(model, precision, degrees.tensor) for count in (embedding_bytes, head_bytes))
        return tables, matrix + tables * (model.tied and degrees.pipeline > 1)

    def _check_held(self, found: Deployment) -> None:
        """Check that the fullest chip holds its weights and caches, and the memory beside it what is put there.

        Of a memory of which the device does not say how much it holds, nothing is known.

        Raises:
            InfeasibleError: one does not; the message has the largest part of the batch that would fit on the chip.
        """
        device, weights, caches, name = self._case.device, found.weight_bytes, found.kv_bytes, found.degrees.name
        capacity, beside = device.capacity_bytes, 0 if device.offload is None else device.offload.capacity_bytes
        if capacity and found.held_bytes > capacity:
            sequences = self._case.batch.sequences
            fitting = sequences * max(0, capacity - weights) // caches if caches else 0
            hint = "; --offload auto" if device.offload is not None and weights <= capacity else ""
            remedy = f"about {fitting} of {sequences} sequences fit" if fitting else "no sequence fits: more chips"
            held = f"{weights / _GIB:.1f} GiB of weights and {caches / _GIB:.1f} GiB of caches on a chip ({name})"
            message = f"system {device.name!r}: found {held} against {capacity / _GIB:.1f} GiB ({remedy}{hint})"
            raise InfeasibleError(message, "capacity", float(found.held_bytes))
        if beside and found.offload_bytes > beside:
            away = f"{found.offload_bytes / _GIB:.1f} GiB of caches to offload of a chip ({name})"
            message = f"system {device.name!r}: found {away} against {beside / _GIB:.1f} GiB"
            raise InfeasibleError(message, "offload", float(found.offload_bytes))

    def _sent_s(self, degrees: Degrees, batch: Batch) -> float:
        if degrees.pipeline == 1:
            return 0.0
        amount = self._case.precision.activations.bytes_of(batch.tokens * self._case.model.hidden)
        return self.collectives.send(self.group(degrees.stage_chips, degrees.pipeline), amount / degrees.tensor)

    def group(self, stride: int, chips: int) -> Group:
        """Return the group of so many chips, each ``stride`` after the one before.

        Raises:
            InfeasibleError: it lies across the network.
        """
        if chips == 1:
            return ()
        found = sharing.group_of(self.links, stride, chips)
        if found is None:
            sizes = " x ".join(str(link.chips) for link in self.links)
            raise InfeasibleError(f"degrees: found a group of {chips} chips that lies across the network of {sizes}")
        return found

    def _timed(self, by_layer: dict[Layer, _LayerCost], here: Sequence[_LayerCost], *ends: _LayerCost) -> StepTime:
        """Return the kernels of the slowest stage, as many of each kind as it has, and of embedding and head."""
        kernels: list[Kernel] = []
        for kind, cost in ((kind, by_layer[kind.layer]) for kind in self._case.model.kinds):
            count = sum(one is cost for one in here)
            kernels += [replace(kernel, part=kind.name, count=count) for kernel in cost.kernels if count]
        return self.time([*kernels, *(kernel for end in ends for kernel in end.kernels)])

    def time(self, kernels: Sequence[Kernel]) -> StepTime:
        """Return the time of kernels on a chip."""
        return timed_step(kernels, self._case.device, self._case.timer, self._case.transfers)
