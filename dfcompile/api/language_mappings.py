"""Layers of a study through the back end: what ``dfcompile llm --map`` adds."""

from dfcompile.language_models.mapping.mapped_layers import MappedStep, mapped_step
from dfcompile.language_models.study import Study


def mapped(study: Study) -> tuple[MappedStep, ...]:
    """Map a layer of each kind of every step of a study on its system, with as many chips as were at hand.

    Raises:
        UserError: as `mapped_step`.
    """
    request = study.request
    return tuple(
        mapped_step(
            request.system, study.model, batch, study.device, study.precision, request.choices, max(request.chips)
        )
        for batch in request.batches
    )
