"""Parameters and cached elements of a model: exact integers."""

from msgspec import Struct

from dfcompile.language_models.model import Model


class Parameters(Struct, frozen=True):
    """Elements of a model by what they are for.

    Attributes:
        attention: matrices, biases, norms of queries and keys, sinks.
        mixers: all of recurrent mixers.
        mlp: dense ones, experts, routers.
        norms: of the layers and the last one.
        embedding: of tokens and learned positions.
        head: of the vocabulary; 0 where it is the embedding.
        inactive: of experts that one token does not use.
        lookup_only: of tables of which a token uses a row: positions, and the embedding unless it is the head.
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
    embedding, positions = model.vocabulary * hidden, model.positions * hidden
    mlps = [layer.mlp for layer in model.layers if layer.mlp is not None]
    mlp = sum(one.parameters(hidden) for one in mlps)
    return Parameters(
        attention=sum(one.parameters(hidden) for one in model.attentions),
        mixers=sum(one.parameters(hidden) for one in model.mixers),
        mlp=mlp,
        norms=sum(layer.norm_parameters(hidden) for layer in model.layers) + model.end_parameters,
        embedding=embedding + positions,
        head=0 if model.tied else embedding,
        inactive=mlp - sum(one.active_parameters(hidden) for one in mlps),
        lookup_only=positions + (0 if model.tied else embedding),
    )


def kv_elements_per_token(model: Model) -> int:
    """Elements that one more token of a short sequence leaves in the caches of all layers."""
    return sum(attention.kv_elements for attention in model.attentions)
