"""A step of a model: kernels of MLPs, dense or of experts, and every kernel of a layer, the embedding and the head."""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.mixer import Operand, Product
from dfcompile.language_models.model import Attention, DenseMlp, Experts, Layer, Model
from dfcompile.language_models.steps.attention_kernels import attention_kernels, projection, vector_kernel
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.kernel import Fusion, Kernel, KernelKind, Role, StepChoices, Work
from dfcompile.language_models.steps.mixer_kernels import mixer_kernels
from dfcompile.records import replace


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
    shares, room = [0.0] * len(weights), float(chosen)
    left = [e for e in range(len(weights)) if weights[e] > 0]
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
    for at in (-8 + step * (number + 0.5) for number in range(1600)):
        below = (0.5 * math.erfc(-at / math.sqrt(2))) ** count
        total += step * (1 - below if at > 0 else -below)
    return total


def dense_kernels(mlp: DenseMlp, hidden: int, tokens: int, precision: Precision, prefix: str = "") -> Iterator[Kernel]:
    """Yield the products of one MLP."""
    opening = f"{prefix}gate_up" if mlp.gated else f"{prefix}up"
    yield projection(opening, tokens, hidden, mlp.opening, precision, "mlp", role=Role.WIDENING)
    yield projection(f"{prefix}down", tokens, mlp.width, hidden, precision, "mlp")


def product_kernels(products: Sequence[Product], tokens: int, precision: Precision) -> Iterator[Kernel]:
    """Yield products of every token beside attention and MLP; those with activations have a matrix per token."""
    for one in products:
        made = projection(one.name, tokens * one.rows, one.k, one.n, precision, "mlp")
        if one.of is Operand.ACTIVATIONS:
            matrices = precision.activations.bytes_of(tokens * one.k * one.n)
            made = replace(
                made, kind=KernelKind.MATRIX_GROUPED, m=one.rows, batch=tokens, weight_bytes=0, vector_elements=0,
                act_in_bytes=made.act_in_bytes + matrices, stored=precision.activations.stored_name,
                rate=precision.product(precision.activations),
            )  # fmt: skip
        yield made


def expert_kernels(
    experts: Experts, hidden: int, tokens: int, precision: Precision, choices: StepChoices, share: ExpertShare
) -> Iterator[Kernel]:
    """Yield router, dispatch, the products of the experts that tokens touch, shared experts and combination.

    Weights are those of the expected number of distinct experts. ``experts`` is the whole mixture; ``share`` says
    which part of it the chip has, and its rows are those of the fullest chip.
    """
    yield projection("router", tokens, hidden, experts.count, precision, "router", role=Role.OPENING)
    met = tokens * share.tokens
    rows = -(-met * experts.chosen // share.ranks)
    if share.imbalance > 1:
        rows = math.ceil(rows * share.imbalance)
    touched = distinct_experts(experts, met, choices) / share.ranks
    expert, read = experts.expert(share.split), experts.read(hidden)
    if experts.latent:
        yield projection("latent_down", tokens, hidden, read, precision, "mlp", role=Role.OPENING)
    yield _moved("dispatch", tokens * read, rows * read, precision)
    for name, k, n, role in (
        ("expert_gate_up" if experts.gated else "expert_up", read, expert.opening, Role.EXPERT_WIDENING),
        ("expert_down", expert.width, read, Role.PLAIN),
    ):
        yield replace(
            projection(name, rows, k, n, precision, "experts", role=role),
            work=Work.EXPERTS,
            weight_bytes=round(touched * precision.experts.bytes_of(k * n)),
            vector_elements=round(touched * k * n) * precision.widens(precision.experts),
            distinct=max(1.0, touched),
        )
    if experts.shared_width:
        yield from dense_kernels(experts.shared, hidden, tokens, precision, "shared_")
    if experts.shared_gate:
        yield projection("shared_gate", tokens, hidden, 1, precision, "vectors", role=Role.OPENING)
    yield replace(_moved("combine", rows * read, tokens * read, precision), role=Role.COMBINING)
    if experts.latent:
        yield projection("latent_up", tokens, read, hidden, precision, "mlp")


def distinct_experts(experts: Experts, tokens: int, choices: StepChoices) -> float:
    """Experts that so many tokens touch in the mean."""
    if choices.expert_shares:
        return expected_distinct(chosen_shares(choices.expert_shares, experts.chosen), tokens)
    return expected_distinct_uniform(experts.count, experts.chosen, tokens)


def between_products(layer: Layer, hidden: int, tokens: int, precision: Precision, split: int = 1) -> Kernel:
    """Return norms, residuals and activation functions: each reads and writes once.

    Rotations of queries and keys, and their norms, are part of the products that make them.

    Args:
        layer: as large as the chip has it.
        hidden: elements of a token.
        tokens: of the step.
        precision: formats.
        split: chips that share the tokens of norms and residuals.
    """
    whole, mlp = (layer.norms + layer.branches) * hidden // split, layer.mlp
    opened, closed = 0, 0
    if isinstance(mlp, DenseMlp):
        opened, closed = mlp.opening, mlp.width
    elif mlp is not None:
        closed = mlp.chosen * mlp.width + mlp.shared_width
        opened = (2 if mlp.gated else 1) * closed
    carried = layer.carried // split
    read, written = tokens * (whole + opened + carried), tokens * (whole + closed + carried)
    shape, form, attention = (tokens, 1, hidden), precision.activations, layer.attention
    # Norms with residuals, the activation function, rotations, what writes to the cache, norms of queries and of keys.
    launches = layer.norms + (mlp is not None) + (layer.cross is not None) + 2 * (attention is not None)
    launches += 2 * bool(isinstance(attention, Attention) and attention.norm_parameters)
    made = vector_kernel("norms_residuals_act", shape, read, written, form, read, launches=launches)
    return replace(made, role=Role.BETWEEN)


def _moved(name: str, taken: int, given: int, precision: Precision) -> Kernel:
    return vector_kernel(name, (1, 1, max(taken, given)), taken, given, precision.activations, taken)


class Step(Struct, frozen=True):
    """The kernels of a step, those of a layer kind one after the other."""

    kernels: tuple[Kernel, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.total("macs")

    def total(self, field: str) -> int:
        """Return the sum of a field of all kernels, as often as they run."""
        return sum(kernel.count * int(getattr(kernel, field)) for kernel in self.kernels)


def layer_kernels(
    layer: Layer, hidden: int, batch: Batch, precision: Precision, choices: StepChoices, share: ExpertShare = WHOLE
) -> tuple[Kernel, ...]:
    """Return the kernels of one layer, in order; they belong to no part yet.

    Where all is fused, activations reach memory at the borders of the layer alone.
    """
    precision = precision.within(layer.formats)
    mixing: list[Kernel] = []
    if layer.attention is not None:
        mixing += attention_kernels(layer.attention, hidden, batch, precision, choices)
    if layer.cross is not None:
        crossing = attention_kernels(layer.cross, hidden, batch, precision, choices)
        mixing += [replace(kernel, name=f"cross_{kernel.name}") for kernel in crossing]
    if layer.mixer is not None:
        mixing += mixer_kernels(layer.mixer, hidden, batch, precision, choices)
    mlp: Iterator[Kernel] = iter(())
    if isinstance(layer.mlp, Experts):
        mlp = expert_kernels(layer.mlp, hidden, batch.tokens, precision, choices, share)
    elif layer.mlp is not None:
        mlp = dense_kernels(layer.mlp, hidden, batch.tokens, precision)
    shown: list[Kernel] = []
    beside = product_kernels(layer.products, batch.tokens, precision)
    for kernel in (*mixing, *mlp, *beside, between_products(layer, hidden, batch.tokens, precision)):
        if choices.fusion is Fusion.NONE or kernel.work is not Work.VECTOR:
            shown.append(kernel)
        else:  # its elements pass the vector unit all the same, beside the product that it is taken as part of
            shown[-1] = replace(shown[-1], vector_elements=shown[-1].vector_elements + kernel.vector_elements)
    if choices.fusion is not Fusion.FULL:
        return tuple(shown)
    border, last = precision.activations.bytes_of(batch.tokens * hidden), len(shown) - 1
    return tuple(
        replace(kernel, act_in_bytes=0 if number else border, act_out_bytes=0 if number < last else border)
        for number, kernel in enumerate(shown)
    )


def ends_kernels(
    model: Model, batch: Batch, precision: Precision, vocabulary: int
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    """Return the kernels before and after the layers; ``vocabulary`` is the chip's part.

    Before: the look-up of embeddings, and products. After: products and, if a token needs logits, the head.
    """
    hidden, tokens = model.hidden, batch.tokens
    row = model.row + (hidden if model.positions else 0) + model.row_tables[0]
    embedding = Kernel(
        KernelKind.GATHER, Work.VECTOR, "embedding", tokens, 1, hidden,
        part="embedding",
        weight_bytes=precision.embedding.bytes_of(tokens * row),
        act_out_bytes=precision.activations.bytes_of(tokens * (hidden + model.row_tables[0])),
        rate=precision.activations.name,
    )  # fmt: skip
    opening, closing = (product_kernels(one, tokens, precision) for one in (model.opening, model.closing))
    first = (embedding, *(replace(one, part="embedding") for one in opening))
    last = [replace(one, part="head") for one in closing]
    if batch.head_rows:
        head = projection("lm_head", batch.head_rows, model.row, vocabulary, precision, "head")
        last.append(replace(head, part="head"))
    return first, tuple(last)


def step_of(model: Model, batch: Batch, precision: Precision, choices: StepChoices) -> Step:
    """Return all kernels of a step on one chip."""
    first, last = ends_kernels(model, batch, precision, model.vocabulary)
    kernels: list[Kernel] = []
    for kind in model.kinds:
        made = layer_kernels(kind.layer, model.hidden, batch, precision, choices)
        kernels += [replace(kernel, part=kind.name, count=kind.count) for kernel in made]
    return Step((*kernels, *first, *last))
