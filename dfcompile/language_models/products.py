"""Products of small matrices beside those of attention and MLP, and what chooses the tokens of attention."""

from enum import StrEnum, unique

from msgspec import Struct


@unique
class Operand(StrEnum):
    """Whose matrix a product beside attention and MLP has."""

    OWN = "own"
    BEFORE = "before"
    ACTIVATIONS = "activations"


class Product(Struct, frozen=True):
    """A product of every token beside attention and MLP: ``rows`` rows of it with a matrix ``[k, n]``.

    ``of`` says whose matrix: weights of its own, those of a product before, or activations, one matrix per token.
    """

    name: str
    k: int
    n: int
    rows: int = 1
    of: Operand = Operand.OWN

    @property
    def parameters(self) -> int:
        """Elements of its own weights."""
        return self.k * self.n if self.of is Operand.OWN else 0


class Indexer(Struct, frozen=True):
    """What chooses the tokens that a query attends to: heads of queries, and one key of each token in the cache."""

    heads: int
    dim: int

    def weights(self, hidden: int, q_rank: int) -> int:
        """Elements of the matrices of queries and keys."""
        return self.dim * (q_rank * self.heads + hidden)

    def vectors(self, hidden: int) -> int:
        """Elements of the matrix that weighs heads, which is not quantised, and of the norm of keys."""
        return hidden * self.heads + 2 * self.dim
