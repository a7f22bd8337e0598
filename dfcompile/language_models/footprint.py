"""Bytes that a chip holds: weights by their formats, and caches by their blocks."""

from collections.abc import Sequence

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.model import DenseMlp, Layer, Model
from dfcompile.language_models.products import Product
from dfcompile.language_models.steps.batch import Batch


def layer_weight_bytes(layer: Layer, hidden: int, precision: Precision, *, ranks: int = 1, split: int = 1) -> int:
    """Bytes of a layer: matrices by their class, biases and norms apart; of experts, those of one chip alone.

    Experts are spread over ``ranks`` chips, and ``split`` chips share the columns of each.
    """
    mlp, precision = layer.mlp, precision.within(layer.formats)
    matrices = sum(attention.weights(hidden) for attention in layer.attentions)
    rest = layer.attention_parameters(hidden) - matrices + layer.norm_parameters(hidden)
    held = precision.attention.bytes_of(matrices) + precision.mlp.bytes_of(layer.product_parameters)
    if isinstance(mlp, DenseMlp):
        matrices = hidden * (mlp.opening + mlp.width)
        rest += mlp.parameters(hidden) - matrices
        held += precision.mlp.bytes_of(matrices)
    else:
        width, count = mlp.width // split, mlp.count // ranks
        held += count * precision.experts.bytes_of(3 * hidden * width)
        held += precision.vectors.bytes_of(mlp.bias * count * (2 * width + hidden))
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
    """Bytes of the cache of a layer after a step: each sequence takes whole blocks of tokens.

    A prefix that all sequences share is held once.
    """
    elements = 0
    for attention in layer.attentions:
        kept = [attention.reach.kept(group.context) for group in batch.groups]
        tokens = min(shared_prefix, max(kept)) // block * block
        for group, held in zip(batch.groups, kept, strict=True):
            shared = min(shared_prefix, held) // block * block
            tokens += group.count * (-(-(held - shared) // block) * block)
        elements += tokens * attention.kv_elements
    return precision.kv.bytes_of(elements)
