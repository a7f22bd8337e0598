"""Chains of products and attention as models, and what attention moves in three ways."""

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from itertools import pairwise

from dfcompile.canonical_dag import TensorRole
from dfcompile.io_bounds.curve import Curve, Rules, total
from dfcompile.io_bounds.einsum.attention import Attention, attention_curve
from dfcompile.io_bounds.einsum.plain import gemm
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, BoundedTensor, Operand, Rows


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
