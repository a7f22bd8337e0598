"""A training step on several chips: passes of micro-batches through stages, exchanges, and what a chip holds.

Each stage runs a forward and a backward pass in turn, so that a stage i of p holds the activations of at most p - i
micro-batches [narayanan21]. A step is ``m slowest + (all stages - slowest) / v`` for m micro-batches and v runs of
layers per stage: the second term is the bubble. Gradients are exchanged among replicas after the last backward pass.

And the search for how such a step is split over chips.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted
from dfcompile.language_models.footprint import layer_weight_bytes
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.model import Experts, Layer
from dfcompile.language_models.parallel import degrees as sharing
from dfcompile.language_models.parallel.degrees import Degrees, Impossible, all_degrees
from dfcompile.language_models.parallel.deployment import Case, Deployments, balanced
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.language_models.steps.step import WHOLE
from dfcompile.language_models.steps.training_kernels import (
    GRADIENTS,
    Pass,
    Recompute,
    TrainingChoices,
    end_passes,
    layer_pass,
    state_bytes,
    update_kernel,
)
from dfcompile.language_models.times.step_time import StepTime
from dfcompile.records import replace

_COUNTED = uniform(FORMATS["int8"])  # a byte per element
_GIB = 2**30


class Weights(Struct, frozen=True):
    """Elements of the weights of a chip.

    Attributes:
        shared: that all replicas of a stage have.
        experts: that fewer have, for they are spread over chips of several replicas.
    """

    shared: int
    experts: int = 0

    @property
    def total(self) -> int:
        """All elements."""
        return self.shared + self.experts


class Held(Struct, frozen=True):
    """Bytes that the fullest chip holds.

    Attributes:
        weights: in the format of activations.
        gradients: sums over micro-batches, 4 bytes each.
        optimiser: moments, and weights in 4 bytes.
        activations: of all micro-batches in flight.
        working: of a layer that is computed again.
    """

    weights: int
    gradients: int
    optimiser: int
    activations: int
    working: int

    @property
    def total(self) -> int:
        """All bytes."""
        return self.weights + self.gradients + self.optimiser + self.activations + self.working


class TrainingStep(Struct, frozen=True):
    """A training step under degrees of parallelism; seconds are those of the slowest stage, and add up to the step.

    Attributes:
        degrees: of parallelism.
        exec_s: of the step.
        forward_s: of forward passes.
        recompute_s: of what backward passes compute again.
        backward_s: of gradients.
        exchange_s: within micro-batches: sums over tensor groups, tokens to experts, activations to the next stage.
        bubble_s: while the pipeline fills and drains.
        gradients_s: of the exchange of gradients among replicas.
        optimiser_s: of the update.
        held: by the fullest chip.
        stage_layers: of each stage.
        kernels: of the slowest stage for one micro-batch, and the update.
    """

    degrees: Degrees
    exec_s: float
    forward_s: float
    recompute_s: float
    backward_s: float
    exchange_s: float
    bubble_s: float
    gradients_s: float
    optimiser_s: float
    held: Held
    stage_layers: tuple[int, ...]
    kernels: StepTime


class _Cost(Struct, frozen=True):
    """What a layer, or an end of the model, takes for a micro-batch."""

    kernels: Pass
    forward_s: float
    again_s: float
    backward_s: float
    exchange_s: float
    weights: Weights

    @property
    def exec_s(self) -> float:
        return self.forward_s + self.again_s + self.backward_s + self.exchange_s


class Trainings:
    """Training steps of one case, whose batch is of all chips; what degrees have in common is counted once."""

    def __init__(self, case: Case, training: TrainingChoices, chips: int) -> None:
        # Training is in the dtype of the configuration, whatever a checkpoint was quantised to.
        form = case.precision.vectors
        layers = tuple(replace(layer, formats=()) for layer in case.model.layers)
        self._case = replace(case, model=replace(case.model, layers=layers), precision=uniform(form))
        self._training = training
        self._deployments = Deployments(self._case, chips)
        self._time = self._deployments.time

    def step(self, degrees: Degrees) -> TrainingStep:
        """Return the step under some degrees.

        Raises:
            InfeasibleError: a dimension does not divide, a group lies across the network, or memory does not suffice.
        """
        case, parts, runs = self._case, degrees.micro_batches, self._runs(degrees)
        self._check(degrees)
        batch = sharing.share_of_batch(case.batch, degrees)
        by_layer = {kind.layer: self._layer(kind.layer, degrees) for kind in case.model.kinds}
        costs = [by_layer[layer] for layer in case.model.layers]
        first, last = self._ends(degrees)
        seconds = [cost.exec_s for cost in costs]
        seconds[0] += first.exec_s
        seconds[-1] += last.exec_s
        sent = 0.0
        if degrees.pipeline > 1:
            amount = case.precision.activations.bytes_of(batch.tokens * case.model.hidden) / degrees.tensor
            between = self._deployments.group(degrees.stage_chips, degrees.pipeline)
            sent = 2 * runs * self._deployments.collectives.send(between, amount)
        places = list(pairwise((0, *balanced(tuple(seconds), degrees.pipeline))))
        stages = [costs[start:end] for start, end in places]
        stages[0].insert(0, first)
        stages[-1].append(last)
        taken = [math.fsum(cost.exec_s for cost in stage) + sent for stage in stages]
        slow = stages[max(range(len(stages)), key=taken.__getitem__)]
        held = [self._held(stage, at, degrees) for at, stage in enumerate(stages)]
        exchanged = max(self._gradients_s(stage, degrees) for stage in stages)
        if case.model.tied and degrees.pipeline > 1:
            # The sum of the gradients of first and last stage, which both have the embedding.
            ends = self._deployments.group(degrees.stage_chips, degrees.pipeline)
            tables = GRADIENTS.bytes_of(first.weights.total)
            exchanged += self._deployments.collectives.send(ends, tables)
        updates = max(self._updated(stage, degrees) for stage in stages)
        bubble = (math.fsum(taken) - max(taken)) / runs
        update = self._time([update_kernel(updates, case.precision)])
        whole = math.fsum((parts * max(taken), bubble, exchanged, update.exec_s))
        found = TrainingStep(
            degrees=degrees,
            exec_s=whole,
            forward_s=parts * math.fsum(cost.forward_s for cost in slow),
            recompute_s=parts * math.fsum(cost.again_s for cost in slow),
            backward_s=parts * math.fsum(cost.backward_s for cost in slow),
            exchange_s=parts * (math.fsum(cost.exchange_s for cost in slow) + sent),
            bubble_s=bubble,
            gradients_s=exchanged,
            optimiser_s=update.exec_s,
            held=max(held, key=lambda one: one.total),
            stage_layers=tuple(end - start for start, end in places),
            kernels=self._time([*self._kernels(by_layer, slow, (first, last)), update_kernel(updates, case.precision)]),
        )
        self._check_held(found)
        return found

    def _check(self, degrees: Degrees) -> None:
        sequences, parts = self._case.batch.sequences, degrees.data * degrees.micro_batches
        if degrees.sequence > 1:
            raise InfeasibleError("degrees: found a context that chips share against training, which does not split it")
        if sequences % parts:
            raise InfeasibleError(f"degrees: found {sequences} sequences, which {parts} micro-batches do not divide")
        stages, layers, runs = degrees.pipeline, len(self._case.model.layers), self._runs(degrees)
        if runs > 1 and (layers % (stages * runs) or degrees.micro_batches % stages):
            wanted = f"{layers} layers and {degrees.micro_batches} micro-batches of {stages} stages"
            raise InfeasibleError(f"--interleave {runs}: found {wanted}, which it does not divide")

    def _runs(self, degrees: Degrees) -> int:
        """Return the runs of layers of a stage; one stage has one."""
        return self._training.interleave if degrees.pipeline > 1 else 1

    def _layer(self, layer: Layer, degrees: Degrees) -> _Cost:
        case, training = self._case, self._training
        batch = sharing.share_of_batch(case.batch, degrees)
        share = sharing.share_of_layer(layer, degrees)
        mlp = layer.mlp
        experts = sharing.expert_share(mlp, batch, degrees, case.choices) if isinstance(mlp, Experts) else WHOLE
        hidden = case.model.hidden
        made = layer_pass(share, hidden, batch, case.precision, case.choices, training, experts, degrees.tensor)
        once, _ = self._deployments.exchanges(layer, share, degrees, batch)
        exchanged = once * (3 if training.recompute is Recompute.LAYERS else 2)
        held = layer_weight_bytes(share, hidden, _COUNTED, ranks=degrees.expert, split=degrees.expert_split)
        spread = 0
        if isinstance(mlp, Experts):
            spread = mlp.count // degrees.expert * mlp.expert(degrees.expert_split).parameters(mlp.read(hidden))
        return self._cost(made, exchanged, Weights(held - spread, spread))

    def _cost(self, made: Pass, exchange_s: float, weights: Weights) -> _Cost:
        forward, again, backward = (self._time(kernels).exec_s for kernels in (made.forward, made.again, made.backward))
        return _Cost(made, forward, again, backward, exchange_s, weights)

    def _ends(self, degrees: Degrees) -> tuple[_Cost, _Cost]:
        """Return embedding and head: each sums activations over the tensor group once."""
        case, chips = self._case, degrees.tensor
        batch = sharing.share_of_batch(case.batch, degrees)
        split = chips if self._training.splits_norms else 1
        made = end_passes(case.model, batch, case.precision, -(-case.model.vocabulary // chips), split)
        amount = case.precision.activations.bytes_of(batch.tokens * case.model.hidden)
        summed = self._deployments.collectives.all_reduce(self._deployments.group(1, chips), amount)
        tables, matrix = self._deployments.end_bytes(degrees, _COUNTED)
        return self._cost(made[0], summed, Weights(tables)), self._cost(made[1], summed, Weights(matrix))

    def _held(self, stage: Sequence[_Cost], at: int, degrees: Degrees) -> Held:
        elements = sum(cost.weights.total for cost in stage)
        flying = in_flight(at, degrees.pipeline, degrees.micro_batches, self._runs(degrees))
        kept = math.ceil(flying * sum(cost.kernels.kept_bytes for cost in stage))
        return Held(
            weights=self._case.precision.activations.bytes_of(elements),
            gradients=GRADIENTS.bytes_of(elements),
            optimiser=self._updated(stage, degrees) * state_bytes(self._case.precision),
            activations=kept,
            working=max(cost.kernels.working_bytes for cost in stage),
        )

    def _updated(self, stage: Sequence[_Cost], degrees: Degrees) -> int:
        """Return the weights that a chip updates: of shared states its part."""
        parts = self._weights(stage, degrees)
        return sum(-(-part // chips) if self._training.shards_optimiser else part for part, _, chips in parts)

    def _weights(self, stage: Sequence[_Cost], degrees: Degrees) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return elements that all replicas have, and those of experts; the group that has the same of each."""
        shared, experts = sum(cost.weights.shared for cost in stage), sum(cost.weights.experts for cost in stage)
        replicas = degrees.stage_chips // degrees.expert_group
        return (shared, degrees.tensor, degrees.data), (experts, degrees.expert_group, replicas)

    def _gradients_s(self, stage: Sequence[_Cost], degrees: Degrees) -> float:
        """Return the seconds of the sums over replicas; where states are shared, new weights are gathered instead."""
        seconds, chips = 0.0, self._deployments
        for elements, stride, count in self._weights(stage, degrees):
            group = chips.group(stride, count)
            if not self._training.shards_optimiser:
                seconds += chips.collectives.all_reduce(group, GRADIENTS.bytes_of(elements))
                continue
            # The first half of an all-reduce takes as long as a gather.
            for form in (GRADIENTS, self._case.precision.activations):
                seconds += chips.collectives.all_gather(group, form.bytes_of(elements))
        return seconds

    def _kernels(self, by_layer: dict[Layer, _Cost], here: Sequence[_Cost], ends: Sequence[_Cost]) -> list[Kernel]:
        kernels: list[Kernel] = []
        for kind, cost in ((kind, by_layer[kind.layer]) for kind in self._case.model.kinds):
            count = sum(one is cost for one in here)
            made = (*cost.kernels.forward, *cost.kernels.again, *cost.kernels.backward) if count else ()
            kernels += [replace(kernel, part=kind.name, count=count) for kernel in made]
        for end in (end for end in ends if any(one is end for one in here)):
            kernels += [*end.kernels.forward, *end.kernels.backward]
        return kernels

    def _check_held(self, found: TrainingStep) -> None:
        device, held = self._case.device, found.held
        if not device.capacity_bytes or held.total <= device.capacity_bytes:
            return
        names = ("weights", "gradients", "optimiser", "activations")
        parts = ", ".join(f"{getattr(held, name) / _GIB:.1f} of {name}" for name in names)
        against = f"against {device.capacity_bytes / _GIB:.1f} ({found.degrees.name}; --recompute, or more chips)"
        message = f"system {device.name!r}: found {held.total / _GIB:.1f} GiB on a chip ({parts}) {against}"
        raise InfeasibleError(message, "capacity", float(held.total))


def in_flight(stage: int, stages: int, micro_batches: int, runs: int) -> Fraction:
    """Return the micro-batches whose activations a stage keeps at most, in whole stages.

    >>> [str(in_flight(0, 8, 64, runs)) for runs in (1, 3)]
    ['8', '31/3']
    """
    if runs == 1:
        return Fraction(min(micro_batches, stages - stage))
    warm = (runs - 1) * stages + 2 * (stages - 1 - stage) + 1
    return min(Fraction(micro_batches), Fraction(warm, runs))


MICRO_BATCHES = (1, 2, 4, 8, 16)  # sequences of a micro-batch that are tried


def training_degrees(case: Case, chips: int) -> Iterator[Degrees]:
    """Yield the degrees that are tried: micro-batches of a few sequences, and no context that chips share."""
    model, sequences = case.model, case.batch.sequences
    choices = all_degrees(chips, experts=model.most_experts, layers=len(model.layers), sequences=sequences)
    for one in (one for one in choices if one.sequence == 1 and one.micro_batches == 1):
        for size in MICRO_BATCHES:
            if sequences % (one.data * size) == 0:
                yield replace(one, micro_batches=sequences // (one.data * size))


def training_plans(
    case: Case, training: TrainingChoices, chips: Sequence[int], fixed: Degrees | None = None
) -> tuple[TrainingStep, ...]:
    """Return the steps of which none is both shorter, in chips times time, and smaller in memory; shortest first.

    Args:
        case: model, device, all sequences of a step and how they are counted.
        training: how the step is run.
        chips: numbers of chips that may be used.
        fixed: degrees; none: all are tried.

    Raises:
        InfeasibleError: no degrees are possible; the message is that of those that need least.
    """
    found: list[TrainingStep] = []
    impossible = Impossible()
    for count in counted(tuple(chips)):
        trainings = Trainings(case, training, count)
        for degrees in counted((fixed,) if fixed is not None else tuple(training_degrees(case, count))):
            with impossible:
                found.append(trainings.step(degrees))
    if not found:
        raise impossible.error
    kept: list[TrainingStep] = []
    for one in sorted(found, key=lambda step: (step.exec_s * step.degrees.chips, step.held.total, step.degrees.name)):
        if not kept or one.held.total < kept[-1].held.total:
            kept.append(one)
    return tuple(kept)
