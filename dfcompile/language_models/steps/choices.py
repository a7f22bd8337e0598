"""Choices of how a step is counted."""

from enum import StrEnum, unique

from msgspec import Struct


@unique
class Fusion(StrEnum):
    """Which activations reach memory."""

    NONE = "none"  # of norms, residuals and activation functions too
    ELEMENTWISE = "elementwise"  # those of matrix products alone
    FULL = "full"  # those between layers alone: a bound, nothing is asked of the chip's memory


@unique
class Latent(StrEnum):
    """How latent attention multiplies."""

    AUTO = "auto"  # absorbed for decodes, naive for prompts
    NAIVE = "naive"  # keys and values are made again of all latents
    ABSORBED = "absorbed"  # queries are brought to the latents


class StepChoices(Struct, frozen=True):
    """How a step is counted.

    Attributes:
        causal: whether a token sees none after it.
        flash: whether scores stay on the chip [dao22]; else softmax is a kernel and scores are written.
        fusion: which activations reach memory.
        latent: how latent attention multiplies.
        shared_prefix: tokens that all sequences begin with and whose cache they share.
        expert_shares: how often each expert is chosen, in any unit; none: all as often.
    """

    causal: bool = True
    flash: bool = True
    fusion: Fusion = Fusion.NONE
    latent: Latent = Latent.AUTO
    shared_prefix: int = 0
    expert_shares: tuple[float, ...] = ()
