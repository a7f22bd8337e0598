"""Parameters and cached elements of a model, and bytes that a chip holds: weights by formats, caches by blocks."""

import math
from collections.abc import Sequence

from msgspec import Struct

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.mixer import Product
from dfcompile.language_models.model import DenseMlp, Layer, Mask, Model
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.mixer_kernels import held_states


class Parameters(Struct, frozen=True):
    """Elements of a model by what they are for.

    Attributes:
        attention: matrices, biases, norms of queries and keys, sinks.
        mixers: all of recurrent mixers.
        mlp: dense ones, experts, routers, and products beside them, in layers or before and after all.
        norms: of the layers and the last one.
        embedding: of tokens and learned positions.
        head: of the vocabulary; 0 where it is the embedding.
        inactive: of experts that one token does not use.
        lookup_only: of tables of which a token uses a row: positions, further ones, and the embedding unless it is
            the head.
    """

    attention: int
    mixers: int
    mlp: int
    norms: int
    embedding: int
    head: int
    inactive: int
    lookup_only: int

    @property
    def total(self) -> int:
        """All elements."""
        return self.attention + self.mixers + self.mlp + self.norms + self.embedding + self.head

    @property
    def active(self) -> int:
        """Elements that a token uses, embedding included: as Mixtral and DeepSeek count."""
        return self.total - self.inactive

    @property
    def active_without_lookup(self) -> int:
        """Elements that a token multiplies with: as gpt-oss counts."""
        return self.active - self.lookup_only


def parameters_of(model: Model) -> Parameters:
    """Count the parameters of a model."""
    hidden = model.hidden
    embedding, tables = model.vocabulary * model.row, model.positions * hidden + math.prod(model.row_tables)
    mlps = [layer.mlp for layer in model.layers if layer.mlp is not None]
    mlp = sum(one.parameters(hidden) for one in mlps)
    beside = sum(one.parameters for one in (*model.opening, *model.closing))
    beside += sum(layer.product_parameters for layer in model.layers)
    return Parameters(
        attention=sum(one.parameters(hidden) for one in model.attentions),
        mixers=sum(one.parameters(hidden) for one in model.mixers),
        mlp=mlp + beside,
        norms=sum(layer.norm_parameters(hidden) for layer in model.layers) + model.end_parameters,
        embedding=embedding + tables,
        head=0 if model.tied else embedding,
        inactive=mlp - sum(one.active_parameters(hidden) for one in mlps),
        lookup_only=tables + (0 if model.tied else embedding),
    )


def kv_elements_per_token(model: Model) -> int:
    """Elements that one more token of a short sequence leaves in the caches of all layers."""
    return sum(one.kv_elements for one in model.attentions if one.reach.mask is not Mask.ENCODER)


def encoder_kv_elements(model: Model) -> int:
    """Elements that an encoder's tokens leave in the caches of all layers, of each sequence."""
    encoders = (one for one in model.attentions if one.reach.mask is Mask.ENCODER)
    return sum(one.reach.extent * one.kv_elements for one in encoders)


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
