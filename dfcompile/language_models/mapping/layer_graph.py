"""One layer of a step as a dataflow graph: the products of its kernels, and the elementwise ones between them."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop, KernelVariant, LoopKind, LoopPart
from dfcompile.dfmodel_backend import Assumption, DataflowGraph, Tensor, TensorKind, Use
from dfcompile.errors import UserError
from dfcompile.language_models.formats import NumberFormat, Precision
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer, Model
from dfcompile.language_models.steps.attention_kernels import is_absorbed, kv_elements_read
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import distinct_experts

# By whether a kernel is a product: of several operands that are no weights, and of one.
_VARIANTS = {
    True: (KernelVariant.GEMM_INPUT1_INPUT2, KernelVariant.GEMM_INPUT1_WEIGHT),
    False: (KernelVariant.ELEMENTWISE_INPUT1_INPUT2, KernelVariant.ELEMENTWISE_INPUT1),
}
_HERE = "dfcompile llm --map"
_ASSUMED = (
    Assumption("attention", "each query has the mean number of keys that it sees, rounded up", _HERE),
    Assumption("cache", "read with its new tokens, which are also handed on as they are made", _HERE),
    Assumption("experts", "each that is touched in the mean has as many rows, both rounded up", _HERE),
    Assumption("layers", "hand each other a tensor through memory", _HERE),
)


class Array(Struct, frozen=True):
    """A tensor and its axes, outer ones first: letters whose extents the builder knows."""

    name: str
    axes: str
    size_bytes: int
    element_bytes: int
    kind: TensorKind

    @property
    def elements(self) -> int:
        """As the back end counts them: bytes, where a number format takes less."""
        return -(-self.size_bytes // self.element_bytes)


class GraphBuilder:
    """Collects kernels; `finish` checks and freezes them.

    A letter is a loop, or an axis that a kernel reads whole; its extent is the same in all of the graph. Each array
    has the digits of its letters, so that the back end may split any loop of which every result has a part.
    """

    def __init__(self, extents: Mapping[str, int], precision: Precision) -> None:
        self._extents = dict(extents)
        self.precision = precision
        self._arrays: dict[str, Array] = {}
        self._makers: dict[str, str] = {}
        self._kernels: list[Kernel] = []

    def array(
        self, name: str, axes: str, kind: TensorKind = TensorKind.INTERMEDIATE, form: NumberFormat | None = None
    ) -> Array:
        """Return a new tensor, of activations unless its format is given."""
        form = form or self.precision.activations
        return self._array(name, axes, kind, form, form.bytes_of(self.extent(axes)))

    def cache(self, name: str, axes: str, elements: int) -> Array:
        """Return the part of a cache that is read, which may be less than its axes have."""
        form = self.precision.kv
        return self._array(name, axes, TensorKind.INPUT, form, form.bytes_of(elements))

    def weights(self, name: str, axes: str, which: str = "attention", mean: float | None = None) -> Array:
        """Return a new matrix of some class, or along the first axis ``mean`` ones, of experts.

        Weights of less than a byte per element, or of a mean number of experts, have as many bytes in each row of
        their last axis, rounded up.
        """
        form: NumberFormat = getattr(self.precision, which)
        one, count = (axes, 1) if mean is None else (axes[1:], mean)
        size = round(count * form.bytes_of(self.extent(one)))
        row = _width(form) * self.extent(axes[:-1])
        return self._array(name, axes, TensorKind.WEIGHT, form, -(-size // row) * row)

    def _array(self, name: str, axes: str, kind: TensorKind, form: NumberFormat, size_bytes: int) -> Array:
        made = self._arrays[name] = Array(name, axes, size_bytes, _width(form), kind)
        return made

    def extent(self, axes: str) -> int:
        """Return the product of the extents of some letters."""
        return math.prod(self._extents[letter] for letter in axes)

    def product(
        self, name: str, reads: Sequence[Array], writes: Array, *, outer: str = "", m: str, k: str, n: str
    ) -> Array:
        """Add ``outer`` products ``[m, k] x [k, n]``; the first operand is held where neither is a weight."""
        return self._add(name, {"outer": outer, "m": m, "k": k, "n": n}, reads, writes)

    def elementwise(self, name: str, reads: Sequence[Array], writes: Array, over: str, *, whole: str = "") -> Array:
        """Add a kernel over the elements of some loops, of which ``whole`` ones are not to be split."""
        return self._add(name, {"m": over}, reads, writes, whole)

    def finish(self, name: str, assumptions: Sequence[Assumption]) -> DataflowGraph:
        """Return the graph.

        Raises:
            UserError: as `DataflowGraph.of`.
        """
        tensors = tuple(map(self._tensor, self._arrays.values()))
        return DataflowGraph.of(name, tuple(self._kernels), tensors, tuple(assumptions))

    def _add(self, name: str, parts: dict[str, str], reads: Sequence[Array], writes: Array, whole: str = "") -> Array:
        of_several, of_one = _VARIANTS["k" in parts]
        variant = of_several if sum(one.kind is not TensorKind.WEIGHT for one in reads) > 1 else of_one
        outer, m, k, n = (self.extent(parts.get(part, "")) for part in LoopPart)
        loops = [
            found
            for word, letters in parts.items()
            for letter in letters
            if letter not in whole
            for found in self._loop(letter, LoopPart(word), reads, writes)
        ]
        self._makers[writes.name] = name
        op, read = "MatMul" if variant.is_gemm else "Elementwise", tuple(one.name for one in reads)
        made = Kernel(name, op, name, "", variant, outer, m, k, n, read, (writes.name,), loops=tuple(loops))
        self._kernels.append(made)
        return writes

    def _loop(self, letter: str, part: LoopPart, reads: Sequence[Array], writes: Array) -> Sequence[KernelLoop]:
        """Return the loop of a letter, if there is something to split and its result, if it is parallel, has it."""
        extent, made = self._extents[letter], self._digit(writes, letter)
        is_sum = part is LoopPart.K
        if extent == 1 or (made is None and not is_sum):
            return ()
        kind = LoopKind.SUM if is_sum else LoopKind.PARALLEL
        inputs = tuple(self._digit(one, letter) for one in reads)
        return (KernelLoop(letter, part, extent, kind, inputs, (None if is_sum else made,)),)

    def _digit(self, array: Array, letter: str) -> Digit | None:
        """Return where a letter moves in an array; by rows alone where elements are none of its axes'."""
        if letter not in array.axes:
            return None
        axis, last = array.axes.index(letter), len(array.axes) - 1
        inner = self.extent(array.axes[axis + 1 :])
        if self.extent(array.axes) == array.elements:
            return Digit(inner, axis)
        if array.kind is not TensorKind.WEIGHT or axis == last:
            return None
        return Digit(inner // self.extent(array.axes[-1]) * (array.elements // self.extent(array.axes[:-1])), axis)

    def _tensor(self, array: Array) -> Tensor:
        uses = []
        for kernel in self._kernels:
            streamed = [name for name in kernel.inputs if self._arrays[name].kind is not TensorKind.WEIGHT]
            if array.name in kernel.inputs:
                uses.append(Use(kernel.name, 0 if array.kind is TensorKind.WEIGHT else streamed.index(array.name)))
        name, maker = array.name, self._makers.get(array.name, "")
        return Tensor(name, array.kind, array.size_bytes, maker, tuple(uses), array.element_bytes)


def _width(form: NumberFormat) -> int:
    """Whole bytes of an element, at least one."""
    return max(1, form.bits // 8)


def layer_graph(
    name: str, layer: Layer, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> DataflowGraph:
    """Return the dataflow graph of one layer.

    Letters: sequences b, their new tokens q, their live tokens s, keys that a query sees c; elements of a token h;
    heads of keys v, query heads of each g, elements of a head d.

    Raises:
        UserError: sequences of several lengths, as a graph has one extent per loop; or a layer with a mixer, or of an
            MLP alone.
    """
    if len(batch.groups) > 1:
        raise UserError(f"--map: {batch.name}: found sequences of {len(batch.groups)} lengths in a step against one")
    _check(layer)
    (group,) = batch.groups
    attention, mlp = layer.attention, layer.mlp
    if attention is None or mlp is None or layer.mixer is not None:
        raise UserError(f"--map: found a layer of {layer.name} against attention followed by an MLP or experts")
    graph = GraphBuilder(_extents(attention, mlp, hidden, group, choices), precision.within(layer.formats))
    x = graph.array("x", "bqh", TensorKind.INPUT)
    normed = _between(graph, "attention_norm", x)
    if isinstance(attention, LatentAttention):
        mixed = _latent(graph, attention, group, choices, normed)
    else:
        mixed = _attention(graph, attention, group, choices, normed)
    if layer.norms > 2:
        mixed = _between(graph, "attention_post_norm", mixed)
    middle = graph.elementwise("attention_residual", (x, mixed), graph.array("middle", "bqh"), "bqh")
    normed = _between(graph, "mlp_norm", middle)
    made = _dense(graph, mlp, normed) if isinstance(mlp, DenseMlp) else _experts(graph, mlp, group, choices, normed)
    if layer.norms > 2:
        made = _between(graph, "mlp_post_norm", made)
    graph.elementwise("mlp_residual", (middle, made), graph.array("y", "bqh", TensorKind.OUTPUT), "bqh")
    return graph.finish(name, _ASSUMED)


def _check(layer: Layer) -> None:
    """Check that a layer has no parts of which there are no kernels here.

    Raises:
        UserError: it has.
    """
    found = [one.name for one in layer.products]
    if isinstance(layer.attention, LatentAttention) and layer.attention.chosen:
        found = ["attention to chosen tokens", *found]
    elif isinstance(layer.attention, Attention) and layer.attention.kv_products < 2:
        found = ["keys and values of another product or layer", *found]
    if found:
        raise UserError(f"--map: found a layer with {', '.join(found)}, which are not mapped")


def ends_graph(model: Model, batch: Batch, precision: Precision) -> DataflowGraph:
    """Return the dataflow graph of the head, if a token needs logits; without any kernel if none does."""
    rows = batch.head_rows
    graph = GraphBuilder({"r": rows, "h": model.row, "w": model.vocabulary}, precision)
    if rows:
        x = graph.array("x", "rh", TensorKind.INPUT)
        weights = graph.weights("head", "wh", "head")
        graph.product("lm_head", (weights, x), graph.array("logits", "rw", TensorKind.OUTPUT), m="w", k="h", n="r")
    return graph.finish("head", ())


def _extents(
    attention: Attention | LatentAttention, mlp: DenseMlp | Experts, hidden: int, group: Sequences, choices: StepChoices
) -> dict[str, int]:
    reach = attention.reach
    found = {
        "b": group.count,
        "q": group.new,
        "s": live(reach, group.past, group.new),
        "c": -(-pairs(reach, group.past, group.new, causal=choices.causal) // group.new),
        "h": hidden,
    }
    if isinstance(attention, LatentAttention):
        found |= {
            "v": attention.heads, "g": 1, "d": attention.v_dim, "e": attention.qk_dim, "a": max(1, attention.q_rank),
            "l": attention.kv_rank, "w": attention.kv_elements, "n": attention.nope,
            "x": attention.nope + attention.v_dim,
        }  # fmt: skip
    else:
        found |= {"v": attention.kv_heads, "g": attention.grouped, "e": attention.qk_dim, "d": attention.v_dim}
    if isinstance(mlp, DenseMlp):
        return found | {"z": mlp.opening // mlp.width, "i": mlp.width}
    tokens = group.count * group.new
    touched = max(1, -(-distinct_experts(mlp, tokens, choices) // 1))
    return found | {
        "o": mlp.count, "u": int(touched), "r": -(-tokens * mlp.chosen // int(touched)), "y": mlp.width,
        "z": 2 if mlp.gated else 1, "i": max(1, mlp.shared_width),
    }  # fmt: skip


def _between(graph: GraphBuilder, name: str, read: Array) -> Array:
    return graph.elementwise(name, (read,), graph.array(f"{name}ed", "bqh"), "bqh", whole="h")


def _projected(
    graph: GraphBuilder, name: str, read: Array, columns: str, depth: str, which: str = "attention"
) -> Array:
    """Add a product with weights, whose result stays between kernels."""
    axes = columns + depth if columns != "h" else depth + columns  # rows of a token's elements are never cut
    weights = graph.weights(f"{name}.weight", axes, which)
    return graph.product(name, (weights, read), graph.array(f"{name}ed", f"bq{columns}"), m=columns, k=depth, n="bq")


def _cached(
    graph: GraphBuilder, group: Sequences, choices: StepChoices, name: str, read: Array, columns: str
) -> tuple[Array, ...]:
    """Add the product that makes new keys or values, which go to the cache.

    Returns:
        What attention reads: the cache first, if there is one, and what was made, for which it has to wait.
    """
    weights = graph.weights(f"{name}.weight", f"{columns}h")
    new = graph.array(f"{name}ed", f"bq{columns}", TensorKind.OUTPUT, graph.precision.kv)
    graph.product(name, (weights, read), new, m=columns, k="h", n="bq")
    if not group.past:
        return (new,)
    held = kv_elements_read(graph.extent(columns), graph.extent("s"), group, choices)
    return graph.cache(f"{name}.cache", f"bs{columns}", held), new


def _attention(graph: GraphBuilder, attention: Attention, group: Sequences, choices: StepChoices, x: Array) -> Array:
    queries = _projected(graph, "q_proj", x, "vge", "h")
    keys = _cached(graph, group, choices, "k_proj", x, "ve")
    values = _cached(graph, group, choices, "v_proj", x, "vd")
    scores, shares = graph.array("scores", "bvqgc"), graph.array("shares", "bvqgc")
    mixed = graph.array("mixed", "bqvgd")
    # What a product holds is the smaller side: the queries of a decode, the keys of a prompt.
    is_few = group.new * attention.grouped < attention.v_dim

    def attend(name: str, cached: tuple[Array, ...], other: Array, made: Array, of_cache: str, depth: str) -> None:
        if is_few:
            graph.product(name, (other, *cached), made, outer="bv", m="qg", k=depth, n=of_cache)
        else:
            graph.product(name, (cached[0], other, *cached[1:]), made, outer="bv", m=of_cache, k=depth, n="qg")

    attend("attention_scores", keys, queries, scores, "c", "e")
    graph.elementwise("softmax", (scores,), shares, "bvqgc", whole="c")
    attend("attention_values", values, shares, mixed, "d", "c")
    return _projected(graph, "o_proj", mixed, "h", "vgd")


def _latent(graph: GraphBuilder, attention: LatentAttention, group: Sequences, choices: StepChoices, x: Array) -> Array:
    asked = _projected(graph, "q_a_proj", x, "a", "h") if attention.q_rank else x
    queries = _projected(graph, "q_b_proj", asked, "ve", "a" if attention.q_rank else "h")
    latents = _cached(graph, group, choices, "kv_a_proj", x, "w")
    mixed, scores, shares = graph.array("mixed", "bqvd"), graph.array("scores", "bvqc"), graph.array("shares", "bvqc")
    if is_absorbed(group, choices):
        weights = graph.weights("q_absorb.weight", "vln")
        moved = graph.array("absorbed", "bqvw")
        graph.product("q_absorb", (weights, queries), moved, outer="v", m="l", k="n", n="bq")
        low = graph.array("low", "bqvl")
        graph.product("attention_scores", (moved, *latents), scores, outer="b", m="qv", k="w", n="c")
        graph.elementwise("softmax", (scores,), shares, "bvqc", whole="c")
        graph.product("attention_values", (shares, latents[0]), low, outer="b", m="qv", k="c", n="l")
        weights = graph.weights("v_up.weight", "vdl")
        graph.product("v_up", (weights, low), mixed, outer="v", m="d", k="l", n="bq")
    else:
        weights = graph.weights("kv_b_proj.weight", "vxl")
        both = graph.array("kv_b_projed", "bsvx")
        graph.product("kv_b_proj", (weights, *latents), both, m="vx", k="l", n="bs")
        graph.product("attention_scores", (both, queries, latents[0]), scores, outer="bv", m="c", k="e", n="q")
        graph.elementwise("softmax", (scores,), shares, "bvqc", whole="c")
        graph.product("attention_values", (both, shares), mixed, outer="bv", m="d", k="c", n="q")
    return _projected(graph, "o_proj", mixed, "h", "vd")


def _dense(graph: GraphBuilder, mlp: DenseMlp, x: Array, prefix: str = "") -> Array:
    opened = _projected(graph, f"{prefix}gate_up" if mlp.gated else f"{prefix}up", x, "zi", "h", "mlp")
    active = graph.elementwise(f"{prefix}activation", (opened,), graph.array(f"{prefix}activated", "bqi"), "bqi")
    return _projected(graph, f"{prefix}down", active, "h", "i", "mlp")


def _experts(graph: GraphBuilder, mlp: Experts, group: Sequences, choices: StepChoices, x: Array) -> Array:
    chosen = _projected(graph, "router", x, "o", "h", "router")
    sent = graph.elementwise("dispatch", (x, chosen), graph.array("dispatched", "urh"), "urh", whole="r")
    touched = distinct_experts(mlp, group.count * group.new, choices)
    weights = graph.weights("expert_gate_up.weight", "uzyh", "experts", touched)
    opened = graph.array("expert_gate_uped", "urzy")
    graph.product("expert_gate_up", (weights, sent), opened, outer="u", m="zy", k="h", n="r")
    active = graph.elementwise("expert_activation", (opened,), graph.array("expert_activated", "ury"), "ury")
    weights = graph.weights("expert_down.weight", "uyh", "experts", touched)
    closed = graph.array("expert_downed", "urh")
    graph.product("expert_down", (weights, active), closed, outer="u", m="h", k="y", n="r")
    combined = graph.array("combined", "bqh")
    beside = (_dense(graph, mlp.shared, x, "shared_"),) if mlp.shared_width else ()
    return graph.elementwise("combine", (closed, chosen, *beside), combined, "bqh", whole="bq")
