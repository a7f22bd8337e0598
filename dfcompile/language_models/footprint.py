"""Bytes that a chip holds: weights by their formats, and caches by their blocks."""

from collections.abc import Sequence

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.mixer import Product
from dfcompile.language_models.model import DenseMlp, Layer, Model
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.mixer_kernels import held_states


def layer_weight_bytes(layer: Layer, hidden: int, precision: Precision, *, ranks: int = 1, split: int = 1) -> int:
    """Bytes of a layer: matrices by their class, biases and norms apart; of experts, those of one chip alone.

    Experts are spread over ``ranks`` chips, and ``split`` chips share the columns of each.
    """
    mlp, precision = layer.mlp, precision.within(layer.formats)
    rest, held = layer.norm_parameters(hidden), precision.mlp.bytes_of(layer.product_parameters)
    for mixing in layer.mixing:
        matrices = mixing.weights(hidden)
        rest += mixing.parameters(hidden) - matrices
        held += precision.attention.bytes_of(matrices)
    if isinstance(mlp, DenseMlp):
        matrices = hidden * (mlp.opening + mlp.width)
        rest += mlp.parameters(hidden) - matrices
        held += precision.mlp.bytes_of(matrices)
    elif mlp is not None:
        expert, count, read = mlp.expert(split), mlp.count // ranks, mlp.read(hidden)
        matrices = read * (expert.opening + expert.width)
        held += count * precision.experts.bytes_of(matrices)
        held += precision.vectors.bytes_of(count * (expert.parameters(read) - matrices))
        held += precision.mlp.bytes_of(2 * mlp.latent * hidden)
        held += precision.mlp.bytes_of(mlp.shared.parameters(hidden)) + precision.router.bytes_of(mlp.count * hidden)
        rest += mlp.count * mlp.router_bias + mlp.shared_gate * hidden
    return held + precision.vectors.bytes_of(rest)


def embedding_bytes(model: Model, precision: Precision, tensor: int = 1) -> int:
    """Bytes of the tables that are looked up, shared by a tensor group, and of products before the layers."""
    width, rows = model.row_tables
    elements = -(-model.vocabulary // tensor) * model.row + model.positions * model.hidden + width * -(-rows // tensor)
    return precision.embedding.bytes_of(elements) + _product_bytes(model.opening, precision)


def head_bytes(model: Model, precision: Precision, tensor: int = 1) -> int:
    """Bytes of the head, of the last norm and of products after the layers; the head may be the embedding."""
    matrix = 0 if model.tied else precision.head.bytes_of(-(-model.vocabulary // tensor) * model.row)
    return matrix + precision.vectors.bytes_of(model.end_parameters) + _product_bytes(model.closing, precision)


def _product_bytes(products: Sequence[Product], precision: Precision) -> int:
    return precision.mlp.bytes_of(sum(one.parameters for one in products))


def weight_bytes(model: Model, precision: Precision) -> int:
    """Bytes of all weights."""
    layers = sum(kind.count * layer_weight_bytes(kind.layer, model.hidden, precision) for kind in model.kinds)
    return layers + embedding_bytes(model, precision) + head_bytes(model, precision)


def layer_kv_bytes(layer: Layer, batch: Batch, precision: Precision, *, block: int = 1, shared_prefix: int = 0) -> int:
    """Bytes of the cache of a layer after a step: each sequence takes whole blocks of tokens, and states of mixers.

    Keys and values of a prefix that all sequences share are held once.
    """
    states = layer.mixer.state_bytes(precision.vectors) * sum(map(held_states, batch.groups)) if layer.mixer else 0
    elements = 0
    for attention in layer.attentions:
        kept = [attention.reach.kept(group.context) for group in batch.groups]
        tokens = min(shared_prefix, max(kept)) // block * block
        for group, held in zip(batch.groups, kept, strict=True):
            shared = min(shared_prefix, held) // block * block
            tokens += group.count * (-(-(held - shared) // block) * block)
        elements += tokens * attention.kv_elements
    return states + precision.kv.bytes_of(elements)


def state_bytes_per_sequence(model: Model, precision: Precision) -> int:
    """Bytes of the states of all layers that a sequence holds, however long it is."""
    return sum(mixer.state_bytes(precision.vectors) for mixer in model.mixers)
