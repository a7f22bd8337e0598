"""Proved lower bounds: what no schedule of an operator falls below, however it orders and holds what it computes."""

from collections.abc import Callable
from math import isqrt

from msgspec import Struct

_NEIGHBOURS = 2  # numbers of segments that are tried on both sides of the best one in real numbers


class Contracted(Struct, frozen=True):
    """What the proof needs of a sum of products.

    Attributes:
        macs: multiplications that have to be done, each with an addition.
        reuse: entries of the operands' matrix form that one word stands for at most; 1 for products of matrices, the
            windows that a word is in for convolutions.
        compulsory_words: operands that are read, and results; each moves at least once.
        result_words: of these the results.
    """

    macs: int
    reuse: int
    compulsory_words: int
    result_words: int


def proved_words(shape: Contracted, size: int) -> int:
    """Return the words that every schedule moves with a buffer of ``size`` words, each product computed once or more.

    Between two reads of the memory behind lie segments. In one with at most R reads, words of the operands and of the
    result that can take part are at most S + R together; by the inequality of Loomis and Whitney they give at most
    ``sqrt(a b c) <= ((S + R) / 3) ** 1.5`` products, times the square root of the reuse. If j segments do not suffice
    for all products, more than j R words move [irony04, smith19; the reuse of windows: chen20]. A result's first visit
    reads nothing, but then its word is written in the end, so that it counts as a read does.

    Args:
        shape: what is computed.
        size: of the buffer in words.
    """
    # the largest ``j R + 1`` with ``macs > j sqrt(reuse) ((S + R) / 3) ** 1.5``, in integers; 0 if none
    best = isqrt(shape.macs * shape.macs // (shape.reuse * size * size * size))
    tried: set[int] = {1, *range(max(1, best - _NEIGHBOURS), best + _NEIGHBOURS + 1)}
    # The largest T = S + R with ``27 macs**2 > reuse * j**2 * T**3``.
    reach = {count: cube_root((27 * shape.macs * shape.macs - 1) // (shape.reuse * count * count)) for count in tried}
    found = [count * (words - size) + 1 for count, words in reach.items()]
    return max(shape.compulsory_words, 0, *found)


def cube_root(number: int) -> int:
    """Return the largest integer whose cube is at most ``number``.

    >>> cube_root(26), cube_root(27), cube_root(10**60)
    (2, 3, 100000000000000000000)
    """
    if number <= 0:
        return 0
    found = 1 << -(-number.bit_length() // 3)
    while True:  # Newton's method from above, in integers
        lower = (2 * found + number // (found * found)) // 3
        if lower >= found:
            return found
        found = lower


def least_passing(macs: int, size: int, most_products: Callable[[int], int]) -> int:
    """Return the words that move at least if a segment's products are bounded by what enters and leaves it.

    Segments of R words moved each: at most ``size + R`` words are there at the start or are read, and at most as many
    are there at the end or are written; ``2 size + R`` together, since the moves are shared. Where R words are not
    enough for all products in h segments and one more, h R words move.

    Args:
        macs: products that are computed, each once or more.
        size: of the buffer in words.
        most_products: of a segment, by the words that enter and leave it.
    """
    found = 0
    moved = max(1, size // 4)
    while moved <= macs:
        found = max(found, moved * ((macs - 1) // most_products(2 * size + moved)))
        if most_products(2 * size + moved) >= macs:
            break
        moved *= 2
    return found


class Passing(Struct, frozen=True):
    """A sum of products of which operands and results may be made and used up without moving.

    Attributes:
        macs: as of `Contracted`.
        reuse: as of `Contracted`.
        depth: products of each word of the result, at least.
        words: of both operands and the result.
    """

    macs: int
    reuse: int
    depth: int
    words: tuple[int, int, int]

    def results_within(self, crossing: int, made: tuple[int, int]) -> int:
        """Return how many words of the result may be made within a segment, from the first product to the last.

        By Loomis and Whitney y such words with their ``depth y`` products have ``depth y <= sqrt(reuse x w y)``.

        Args:
            crossing: words that enter or leave the segment.
            made: words of both operands that may be made within it.
        """
        whole = self.words[2]
        return min(whole, self.reuse * self._pairs(crossing, made) // self.depth**2) if self.depth else whole

    def most_products(self, crossing: int, made: tuple[int, int]) -> int:
        """Return how many products a segment has at most: `sqrt(reuse x w y)`, in three ways.

        x, w and y are at most what crosses and what is made within; what crosses is shared between them.
        """
        results = self.results_within(crossing, made)
        there = min(self.words[2], crossing + results)
        together = crossing + sum(made) + results
        limits = (together**3 // 27, self._pairs(crossing, made) * there)
        return min(isqrt(self.reuse * limit) + 1 for limit in limits)

    def _pairs(self, crossing: int, made: tuple[int, int]) -> int:
        """Return the most of ``x w``."""
        each = [min(words, crossing + inner) for words, inner in zip(self.words[:2], made, strict=True)]
        return min(each[0] * each[1], (crossing + sum(made)) ** 2 // 4)
