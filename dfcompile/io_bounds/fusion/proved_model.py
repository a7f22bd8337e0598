"""What every run of a whole model moves, whichever tensors stay on the chip: proofs of operators, joined."""

from msgspec import Struct

from dfcompile.io_bounds.einsum.convolution import Convolution
from dfcompile.io_bounds.einsum.plain import PlainEinsum
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, Rows
from dfcompile.io_bounds.proved import Passing, least_passing

_DEPTHS = (0, 1, 2, 4)  # operators before an operand that a proof looks at; each is a proof of its own


class _Proof(Struct, frozen=True):
    """Bytes that move of some tensors, beyond what moves of them anyway."""

    gain: int
    operator: str
    tensors: frozenset[str]


def proved_model_bytes(model: BoundedModel, size_bytes: int) -> int:
    """Return the bytes that every run moves with a buffer of ``size_bytes``, if each product is computed.

    A tensor between operators need not move. A segment of a run in which R words of some tensors move has so few
    words of an operator's operands that only some products fit, even if operands are made, or results used up, within
    the segment: a word that is made there needs all of its products there (docs/bounds.md). Proofs that count moves of
    different tensors add up; of those that do not the one that adds more is taken. To this comes what moves of all
    other inputs, parameters and outputs.

    Args:
        model: the operators.
        size_bytes: of the buffer.
    """
    proofs = [
        proof
        for op in model.operators
        if (passing := op.passing) is not None
        for depth in _DEPTHS
        if (proof := _Reader(model, depth).proof(op, passing, size_bytes)).gain > 0
    ]
    found = model.compulsory_bytes
    taken: set[str] = set()
    for proof in sorted(proofs, key=lambda each: (-each.gain, len(each.tensors), each.operator)):
        if not taken & proof.tensors:
            found += proof.gain
            taken |= proof.tensors
    return found


class _Reader:
    """Bounds of the words that are made within a segment, up to some operators before; and the tensors looked at."""

    def __init__(self, model: BoundedModel, depth: int) -> None:
        self.model, self.depth = model, depth
        self.tensors = {tensor.name: tensor for tensor in model.tensors}
        self.makers = {operand.tensor: op for op in model.operators for operand in op.writes}
        self.seen: set[str] = set()

    def proof(self, op: BoundedOperator, passing: Passing, size_bytes: int) -> _Proof:
        """Return the proof of one operator."""
        names = op.reads[0].tensor, op.reads[1].tensor
        self.seen = {op.writes[0].tensor} if isinstance(op.shape, PlainEinsum | Convolution) else set()
        for name in names:
            self._made(name, 1, self.depth)  # which tensors are looked at does not depend on the number
        unit = min(self.tensors[name].element_bytes for name in self.seen)

        def most_products(crossing: int) -> int:
            made = (self._made(names[0], crossing, self.depth), self._made(names[1], crossing, self.depth))
            return passing.most_products(crossing, made)

        words = least_passing(passing.macs, size_bytes // unit, most_products)
        anyway = sum(self.model.compulsory_of(self.tensors[name]) for name in self.seen)
        return _Proof(words * unit - anyway, op.name, frozenset(self.seen))

    def _made(self, name: str, crossing: int, depth: int) -> int:
        """Return how many words of a tensor may be made within a segment."""
        self.seen.add(name)
        words = self.tensors[name].words
        maker = self.makers.get(name)
        if maker is None:
            return 0
        if depth == 0:
            return words
        passing = maker.passing
        if passing is not None and isinstance(maker.shape, PlainEinsum | Convolution):
            first, second = (self._made(read.tensor, crossing, depth - 1) for read in maker.reads[:2])
            return min(words, passing.results_within(crossing, (first, second)))
        if isinstance(maker.shape, Rows):
            for read in maker.reads:  # each word of the result needs one of this operand that no other one needs
                if read.words >= words:
                    return min(words, crossing + self._made(read.tensor, crossing, depth - 1))
        return words
