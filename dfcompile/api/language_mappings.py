"""Layers of a study through the back end: what ``dfcompile llm --map`` adds."""

from dfcompile.errors import UserError
from dfcompile.host.stages import counted
from dfcompile.language_models.mapping.mapped_layers import MappedStep, mapped_step
from dfcompile.language_models.parallel.offloading import NOTHING
from dfcompile.language_models.study import Study


def mapped(study: Study) -> tuple[MappedStep, ...]:
    """Map a layer of each kind of every step of a study on its system, with as many chips as were at hand.

    Raises:
        UserError: as `mapped_step`, or a part of caches is offloaded.
    """
    request = study.request
    if request.offload != NOTHING:
        raise UserError("--map: found --offload against caches in the chip's own memory")
    return tuple(
        mapped_step(
            request.system, study.model, batch, study.device, study.precision, request.choices, max(request.chips)
        )
        for batch in counted(request.batches)
    )
