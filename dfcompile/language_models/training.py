"""The search for how a training step is split over chips."""

from collections.abc import Iterator, Sequence

from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted
from dfcompile.language_models.parallel.degrees import Degrees, all_degrees
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.parallel.training import Trainings, TrainingStep
from dfcompile.language_models.steps.training_kernels import TrainingChoices
from dfcompile.records import replace

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
    nearest: InfeasibleError | None = None
    for count in counted(tuple(chips)):
        trainings = Trainings(case, training, count)
        for degrees in counted((fixed,) if fixed is not None else tuple(training_degrees(case, count))):
            try:
                found.append(trainings.step(degrees))
            except InfeasibleError as error:
                nearest = error if nearest is None else min(nearest, error, key=lambda known: known.enough)
    if not found:
        raise nearest or InfeasibleError("degrees: found none for so many chips")
    kept: list[TrainingStep] = []
    for one in sorted(found, key=lambda step: (step.exec_s * step.degrees.chips, step.held.total, step.degrees.name)):
        if not kept or one.held.total < kept[-1].held.total:
            kept.append(one)
    return tuple(kept)
