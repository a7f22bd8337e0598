"""One layer of a step as a dataflow graph: the products of its kernels, and the elementwise ones between them."""

from dfcompile.dfmodel_backend import Assumption, DataflowGraph, TensorKind
from dfcompile.errors import UserError
from dfcompile.language_models.formats import Precision
from dfcompile.language_models.mapping.graph_builder import Array, GraphBuilder
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer, Model
from dfcompile.language_models.steps.attention_kernels import is_absorbed, kv_elements_read
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.mlp_kernels import distinct_experts

_HERE = "dfcompile llm --map"
_ASSUMED = (
    Assumption("attention", "each query has the mean number of keys that it sees, rounded up", _HERE),
    Assumption("cache", "read with its new tokens, which are also handed on as they are made", _HERE),
    Assumption("experts", "each that is touched in the mean has as many rows, both rounded up", _HERE),
    Assumption("layers", "hand each other a tensor through memory", _HERE),
)


def layer_graph(
    name: str, layer: Layer, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> DataflowGraph:
    """Return the dataflow graph of one layer.

    Letters: sequences b, their new tokens q, their live tokens s, keys that a query sees c; elements of a token h;
    heads of keys v, query heads of each g, elements of a head d.

    Raises:
        UserError: sequences of several lengths: a graph has one extent per loop.
    """
    if len(batch.groups) > 1:
        raise UserError(f"--map: {batch.name}: found sequences of {len(batch.groups)} lengths in a step against one")
    (group,) = batch.groups
    precision = precision.within(layer.formats)
    graph = GraphBuilder(_extents(layer, hidden, group, choices), precision)
    x = graph.array("x", "bqh", TensorKind.INPUT)
    normed = _between(graph, "attention_norm", x)
    if isinstance(layer.attention, LatentAttention):
        mixed = _latent(graph, layer.attention, group, choices, normed)
    else:
        mixed = _attention(graph, layer.attention, group, choices, normed)
    if layer.norms > 2:
        mixed = _between(graph, "attention_post_norm", mixed)
    middle = graph.elementwise("attention_residual", (x, mixed), graph.array("middle", "bqh"), "bqh")
    normed = _between(graph, "mlp_norm", middle)
    if isinstance(layer.mlp, Experts):
        made = _experts(graph, layer.mlp, group, choices, normed)
    else:
        made = _dense(graph, layer.mlp, normed)
    if layer.norms > 2:
        made = _between(graph, "mlp_post_norm", made)
    y = graph.array("y", "bqh", TensorKind.OUTPUT)
    graph.elementwise("mlp_residual", (middle, made), y, "bqh")
    return graph.finish(name, _ASSUMED)


def ends_graph(model: Model, batch: Batch, precision: Precision) -> DataflowGraph:
    """Return the dataflow graph of the head, if a token needs logits; without any kernel if none does."""
    rows = batch.head_rows
    graph = GraphBuilder({"r": rows, "h": model.hidden, "w": model.vocabulary}, precision)
    if rows:
        x = graph.array("x", "rh", TensorKind.INPUT)
        weights = graph.weights("head", "wh", "head")
        logits = graph.array("logits", "rw", TensorKind.OUTPUT)
        graph.product("lm_head", (weights, x), logits, m="w", k="h", n="r")
    return graph.finish("head", ())


def _extents(layer: Layer, hidden: int, group: Sequences, choices: StepChoices) -> dict[str, int]:
    attention, reach = layer.attention, layer.attention.reach
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
    mlp = layer.mlp
    if isinstance(mlp, DenseMlp):
        return found | {"z": mlp.opening // mlp.width, "i": mlp.width}
    tokens = group.count * group.new
    touched = max(1, -(-distinct_experts(mlp, tokens, choices) // 1))
    return found | {
        "o": mlp.count, "u": int(touched), "r": -(-tokens * mlp.chosen // int(touched)), "y": mlp.width, "z": 2,
        "i": max(1, mlp.shared_width),
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
    scores = graph.array("scores", "bvqgc")
    shares = graph.array("shares", "bvqgc")
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
    mixed = graph.array("mixed", "bqvd")
    scores = graph.array("scores", "bvqc")
    shares = graph.array("shares", "bvqc")
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
