"""Parts of layers beside attention and MLP: token mixers whose state does not grow with tokens, and small products.

Mixers are Mamba, Mamba-2, the gated delta rule, lightning attention and others. Beside the products stands what chooses
the tokens of attention.
"""

from enum import StrEnum

from msgspec import Struct

from dfcompile.language_models.formats import FORMATS, NumberFormat


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


class Rule(StrEnum):
    """How a token updates the state of a head, and reads it."""

    SELECTIVE = "mamba"  # every element decays at its own rate, token by token [gu23]
    DUAL = "mamba-2"  # a head decays as one, so that chunks of tokens are products [dao24]
    DELTA = "gated delta"  # the same; what the state already answers to a key is taken off its value [yang24]
    LIGHTNING = "lightning attention"  # a head decays at a fixed rate [qin24]
    LRU = "rg-lru"  # every element decays at a rate that it makes itself; there are no keys and queries [de24]
    CONVOLUTION = "short convolution"  # there is no state but the last tokens


class Mixer(Struct, frozen=True):
    """A mixer: a matrix opens columns, some pass a short convolution, each head updates and reads its state.

    A state has a row per element of a key (B of Mamba) and a column per element of a value (x); what is read of it by a
    query (C) is as wide as a value, and a last matrix closes all of them.

    Attributes:
        rule: of its states.
        heads: of values, each with a state.
        value_dim: elements of a value.
        groups: of heads that share keys and queries; 0 without these.
        key_dim: elements of a key, and so of a state for each of a value; 0 without states.
        gates: columns beside the values, each as wide as all of these.
        head_columns: further columns of every head: its decay, and its rate of learning.
        key_decays: whether each element of a key has a decay of its own, which is a column then.
        low_rank: of the decays of elements of keys, and of a gate; smaller matrices make both of so many columns each.
        rank: of Mamba's time steps; these, keys and queries are made of the values by smaller matrices then. 0: opened.
        blocks: square matrices of every head, which make decays and gates of its values.
        taps: tokens that the convolution sees, 0 without; their channels are values, keys and queries.
        convolution_bias: of every channel.
        opening_bias: of the first matrix.
        closing_bias: of the last one.
        head_vectors: elements of vectors of every head: rates of decay, skips, biases of time steps, norms.
        norm_parameters: elements of norms that heads share.
        chunk: tokens of which a prompt makes one product, 0 where they follow each other.
        state: number format of states; none: that of the vectors.
    """

    rule: Rule
    heads: int
    value_dim: int
    groups: int = 1
    key_dim: int = 0
    gates: int = 1
    head_columns: int = 0
    key_decays: bool = False
    low_rank: int = 0
    rank: int = 0
    blocks: int = 0
    taps: int = 0
    convolution_bias: bool = False
    opening_bias: bool = False
    closing_bias: bool = False
    head_vectors: int = 0
    norm_parameters: int = 0
    chunk: int = 0
    state: NumberFormat | None = FORMATS["fp32"]

    @property
    def inner(self) -> int:
        """Elements of the values of all heads."""
        return self.heads * self.value_dim

    @property
    def keyed(self) -> int:
        """Elements of the keys and queries of a token."""
        return 2 * self.groups * self.key_dim

    @property
    def opening(self) -> int:
        """Columns of the first matrix."""
        keyed = 0 if self.rank else self.keyed
        decays = 2 * self.low_rank if self.low_rank else self.decays
        return self.inner * (1 + self.gates) + keyed + self.heads * self.head_columns + decays

    @property
    def decays(self) -> int:
        """Decays of elements of keys of a token."""
        return self.heads * self.key_dim * self.key_decays

    @property
    def channels(self) -> int:
        """Channels of the convolution."""
        return self.inner + (0 if self.rank else self.keyed) if self.taps else 0

    @property
    def stepped(self) -> int:
        """Columns of the smaller matrix that makes time steps of low rank, keys and queries of the values."""
        return self.rank + self.keyed if self.rank else 0

    @property
    def state_elements(self) -> int:
        """Elements of the states of a sequence."""
        return self.inner * self.key_dim

    def state_bytes(self, vectors: NumberFormat) -> int:
        """Bytes that a sequence holds, however long it is: states, and the last tokens before the convolution.

        As many tokens as there are taps, as transformers and the kernels of Mamba hold them, of RG-LRU one less [hf].
        """
        states = (self.state or vectors).bytes_of(self.state_elements)
        return states + vectors.bytes_of(self.convolved_elements)

    @property
    def convolved_elements(self) -> int:
        """Elements of the last tokens that a sequence holds for its convolution."""
        return self.channels * (self.taps - (self.rule is Rule.LRU))

    def weights(self, hidden: int) -> int:
        """Elements of the matrices."""
        between = self.inner * (self.stepped + self.rank + self.low_rank + self.blocks * self.value_dim)
        return hidden * self.opening + between + self.low_rank * self.decays + self.inner * hidden

    def parameters(self, hidden: int) -> int:
        """Elements of matrices, the convolution, biases and vectors."""
        biases = self.opening_bias * self.opening + self.closing_bias * hidden
        convolution = self.channels * (self.taps + self.convolution_bias)
        return self.weights(hidden) + biases + convolution + self.heads * self.head_vectors + self.norm_parameters
