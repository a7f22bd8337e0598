"""What one chip has of a model, as kernels are made: a layer of its own size, and how many tokens it sees."""

from msgspec import Struct


class ExpertShare(Struct, frozen=True):
    """Experts of one chip.

    Attributes:
        ranks: chips over which the experts are spread.
        split: chips that share each expert's columns.
        tokens: of a step that meet the experts of the group, per token of the chip's own batch.
        imbalance: load of the fullest chip over the mean.
    """

    ranks: int = 1
    split: int = 1
    tokens: int = 1
    imbalance: float = 1.0


WHOLE = ExpertShare()
