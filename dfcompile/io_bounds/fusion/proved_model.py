"""What every run of a whole model moves: proofs of operators, joined; chains of products and attention as models."""

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from itertools import pairwise

from msgspec import Struct

from dfcompile.canonical_dag import TensorRole
from dfcompile.io_bounds.curve import Curve, Rules, total
from dfcompile.io_bounds.einsum.convolution import Convolution
from dfcompile.io_bounds.einsum.plain import Attention, PlainEinsum, attention_curve, gemm
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, BoundedTensor, Operand, Rows
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


@unique
class AttentionFusion(StrEnum):
    """What of attention stays on the chip."""

    UNFUSED = "unfused"  # scores are written and read, by the softmax too
    UNTILED = "untiled"  # all scores of a group of heads, the softmax in place
    FLASH = "flash"  # tiles of scores, in one pass [dao22]


def chain_model(rows: int, widths: Sequence[int], element_bytes: int) -> BoundedModel:
    """Return ``X[rows, w0] W1[w0, w1] W2[w1, w2] …`` as a model."""
    last = len(widths) - 1
    tensors = [BoundedTensor("t0", rows * widths[0], element_bytes, TensorRole.INPUT)]
    operators = []
    for layer, (taken, given) in enumerate(pairwise(widths), start=1):
        weights, result = Operand(f"w{layer}", taken * given), Operand(f"t{layer}", rows * given)
        role = TensorRole.OUTPUT if layer == last else TensorRole.INTERMEDIATE
        tensors.append(BoundedTensor(weights.tensor, weights.words, element_bytes, TensorRole.PARAMETER))
        tensors.append(BoundedTensor(result.tensor, result.words, element_bytes, role))
        reads = Operand(f"t{layer - 1}", rows * taken), weights
        shape = gemm(rows, taken, given)
        operators.append(BoundedOperator(f"layer {layer}", "product", 1, shape, reads, (result,), element_bytes))
    return BoundedModel("chain", tuple(operators), tuple(tensors))


def attention_model(groups: int, shape: Attention, element_bytes: int) -> BoundedModel:
    """Return both products and the softmax between them as a model."""
    query_words, key_words, value_words, result_words = (groups * words for words in shape.words)
    scores = groups * shape.scores
    roles = {
        "q": (query_words, TensorRole.INPUT), "k": (key_words, TensorRole.INPUT), "v": (value_words, TensorRole.INPUT),
        "s": (scores, TensorRole.INTERMEDIATE), "p": (scores, TensorRole.INTERMEDIATE),
        "o": (result_words, TensorRole.OUTPUT),
    }  # fmt: skip
    tensors = {name: BoundedTensor(name, words, element_bytes, role) for name, (words, role) in roles.items()}
    operand = {name: Operand(name, words) for name, (words, _) in roles.items()}
    steps = (
        ("QK", "product", groups, gemm(shape.rows, shape.width, shape.keys), "qk", "s"),
        ("softmax", "softmax", 1, Rows(shape.keys, passes=2), "s", "p"),
        ("PV", "product", groups, gemm(shape.rows, shape.keys, shape.value_width), "pv", "o"),
    )
    operators = tuple(
        BoundedOperator(name, op_type, count, inner, tuple(operand[each] for each in reads), (operand[result],),
                        element_bytes)
        for name, op_type, count, inner, reads, result in steps
    )  # fmt: skip
    return BoundedModel("attention", operators, tuple(tensors.values()))


def attention_curves(groups: int, shape: Attention, rules: Rules) -> Mapping[AttentionFusion, Curve]:
    """Return what attention moves in each way, in words; groups run one after the other."""
    first, softmax, second = attention_model(groups, shape, 1).operators
    one_first, _, one_second = attention_model(1, shape, 1).operators
    held = frozenset({"s", "p"})
    untiled = total([op.curve(rules, held) for op in (one_first, one_second)]).shifted(shape.scores).times(groups)
    return {
        AttentionFusion.UNFUSED: total([op.curve(rules) for op in (first, softmax, second)]),
        AttentionFusion.UNTILED: untiled,
        AttentionFusion.FLASH: attention_curve(shape, rules).times(groups),
    }
