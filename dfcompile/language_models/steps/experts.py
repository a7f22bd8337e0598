"""How many experts a batch touches, and how uneven their loads are."""

import math
from collections.abc import Sequence

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


def chosen_shares(weights: Sequence[float], chosen: int) -> tuple[float, ...]:
    """Return the probability of each expert to be among those of a token, from how often each was seen.

    Their sum is ``chosen``; no expert is chosen twice by a token, so that none exceeds 1 and the rest is shared anew.
    """
    shares = [0.0] * len(weights)
    left, room = [e for e in range(len(weights)) if weights[e] > 0], float(chosen)
    while left:
        total = math.fsum(weights[e] for e in left)
        full = [e for e in left if weights[e] * room >= total]
        if not full:
            for e in left:
                shares[e] = weights[e] * room / total
            break
        for e in full:
            shares[e] = 1.0
        left, room = [e for e in left if e not in set(full)], room - len(full)
    return tuple(shares)


def expected_distinct(shares: Sequence[float], tokens: float) -> float:
    """Experts that so many tokens touch in the mean: ``sum over experts of 1 - (1 - p)^T``.

    It depends on each expert's share alone, so that it holds for routing within groups as well.
    """
    return math.fsum(_touched(share, tokens) for share in shares)


def expected_distinct_uniform(experts: int, chosen: int, tokens: float) -> float:
    """Experts that so many tokens touch where all are as likely; skewed routing touches fewer.

    >>> [round(expected_distinct_uniform(256, 8, tokens), 1) for tokens in (1, 8, 32, 128)]
    [8.0, 57.4, 163.3, 251.6]
    """
    return experts * _touched(chosen / experts, tokens)


def _touched(share: float, tokens: float) -> float:
    if share >= 1.0:
        return 1.0 if tokens > 0 else 0.0
    return -math.expm1(tokens * math.log1p(-share))


def rank_imbalance(experts: int, chosen: int, tokens: int, ranks: int) -> float:
    """Expected load of the fullest of some ranks of experts over the mean, routing being uniform.

    What a token sends to a rank is hypergeometric; the sum over tokens is taken as normal and ranks as independent.
    """
    held = experts // ranks
    mean = chosen * held / experts
    if ranks == 1 or mean * tokens <= 0:
        return 1.0
    spread = (experts - chosen) / (experts - 1) if experts > 1 else 0.0
    deviation = math.sqrt(tokens * mean * (1 - held / experts) * spread)
    largest = tokens * mean + deviation * _largest_normal(ranks)
    return min(largest, tokens * min(chosen, held)) / (tokens * mean)


def rank_imbalance_of(shares: Sequence[float], ranks: int) -> float:
    """Load of the fullest of some ranks over the mean, for measured shares of consecutive experts."""
    held = len(shares) // ranks
    loads = [math.fsum(shares[rank * held : (rank + 1) * held]) for rank in range(ranks)]
    return max(loads) * ranks / math.fsum(loads)


def _largest_normal(count: int) -> float:
    """Expected largest of so many standard normal values: the integral of ``1 - P^n`` less that of ``P^n``."""
    step, total = 0.01, 0.0
    for number in range(1600):
        at = -8 + step * (number + 0.5)
        below = (0.5 * math.erfc(-at / math.sqrt(2))) ** count
        total += step * (1 - below if at > 0 else -below)
    return total
