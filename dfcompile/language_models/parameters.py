"""Parameters and cached elements of a model: exact integers."""

import math

from msgspec import Struct

from dfcompile.language_models.model import Mask, Model


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
