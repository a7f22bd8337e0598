"""What a language model is, as far as its kernels, parameters and caches go."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from dfcompile.language_models.formats import ClassFormats
from dfcompile.language_models.mixer import Indexer, Mixer, Product
from dfcompile.records import replace


class Mask(StrEnum):
    """Which keys a query at position t sees."""

    FULL = "full"  # t + 1
    WINDOW = "window"  # the last w
    CHUNK = "chunk"  # those since the last multiple of c: Llama 4
    ENCODER = "encoder"  # all that an encoder made of each sequence, once


class Reach(Struct, frozen=True):
    """Which keys the queries of a layer see; ``extent`` is w, c or the encoder's tokens, 0 where the mask is full."""

    mask: Mask = Mask.FULL
    extent: int = 0

    @property
    def name(self) -> str:
        """Name in reports."""
        return self.mask.value if self.mask is Mask.FULL else f"{self.mask.value} {self.extent}"

    def kept(self, tokens: int) -> int:
        """Tokens of a sequence whose keys and values are kept."""
        if self.mask is Mask.ENCODER:
            return self.extent
        return tokens if self.mask is Mask.FULL else min(tokens, self.extent)


class Attention(Struct, frozen=True):
    """Attention of ``heads`` query heads over ``kv_heads`` heads of keys and values: MHA, GQA or MQA.

    ``kv_products`` is how many products make keys and values: 2; 1 where values are keys before their rotation; 0 where
    both are those of a layer before, in whose cache they stay.
    """

    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    reach: Reach = Reach()
    qkv_bias: bool = False
    output_bias: bool = False
    norm_parameters: int = 0  # of queries and keys
    sinks: int = 0
    gate_dim: int = 0  # columns of the gate of every head: as many as of its results, one for all of them, or none
    gate_bias: bool = False
    key_bias: bool = True  # of keys, where queries and values have biases
    kv_products: int = 2
    source: int = 0  # elements of an encoder's token; 0: as many as of the decoder's

    @property
    def grouped(self) -> int:
        """Query heads per head of keys and values."""
        return self.heads // self.kv_heads

    @property
    def projected(self) -> int:
        """Columns of queries, keys and values together, and of the gate."""
        made = (0, self.qk_dim, self.qk_dim + self.v_dim)[self.kv_products]
        return self.heads * (self.qk_dim + self.gate_dim) + self.kv_heads * made

    @property
    def kv_elements(self) -> int:
        """Elements that one token leaves in the cache of one layer."""
        return self.kv_heads * (self.qk_dim + self.v_dim) if self.kv_products else 0

    def weights(self, hidden: int) -> int:
        """Elements of the matrices."""
        wider = (self.source - hidden) * self.kv_elements if self.source else 0
        return hidden * self.projected + self.heads * self.v_dim * hidden + wider

    def parameters(self, hidden: int) -> int:
        """Elements of matrices, biases, norms and sinks."""
        gate = self.heads * self.gate_dim
        biased = self.projected - gate - (not self.key_bias) * self.kv_heads * self.qk_dim
        biases = self.qkv_bias * biased + self.gate_bias * gate + self.output_bias * hidden
        return self.weights(hidden) + biases + self.norm_parameters + self.sinks


class LatentAttention(Struct, frozen=True):
    """Multi-head latent attention (MLA): the cache holds ``kv_rank + rope`` elements per token [deepseek24].

    With ``chosen``, a query attends to so many tokens at most: those that ``indexer`` chooses, or that of a layer
    before.
    """

    heads: int
    q_rank: int  # 0: queries are projected at once
    kv_rank: int
    rope: int
    nope: int
    v_dim: int
    bias: bool = False
    reach: Reach = Reach()
    gate_dim: int = 0  # columns of the gate of every head
    chosen: int = 0  # 0: all
    indexer: Indexer | None = None

    @property
    def qk_dim(self) -> int:
        """Elements of a query or key of one head."""
        return self.nope + self.rope

    @property
    def latent(self) -> int:
        """Elements of the latent of one token."""
        return self.kv_rank + self.rope

    @property
    def kv_elements(self) -> int:
        """Elements that one token leaves in the cache of one layer."""
        return self.latent + (0 if self.indexer is None else self.indexer.dim)

    @property
    def expanded(self) -> int:
        """Columns of the matrix that makes keys and values of a latent."""
        return self.heads * (self.nope + self.v_dim)

    def weights(self, hidden: int) -> int:
        """Elements of the matrices."""
        queries = self.heads * self.qk_dim
        asked = hidden * self.q_rank + self.q_rank * queries if self.q_rank else hidden * queries
        latent = hidden * self.latent + self.kv_rank * self.expanded
        index = 0 if self.indexer is None else self.indexer.weights(hidden, self.q_rank)
        return asked + latent + self.heads * (self.v_dim + self.gate_dim) * hidden + index

    def parameters(self, hidden: int) -> int:
        """Elements of matrices, biases and the norms of the latents."""
        biases = self.bias * (self.q_rank + self.latent + hidden)
        index = 0 if self.indexer is None else self.indexer.vectors(hidden)
        return self.weights(hidden) + biases + self.q_rank + self.kv_rank + index


class DenseMlp(Struct, frozen=True):
    """One MLP; gated ones have three matrices, plain ones two."""

    width: int
    gated: bool = True
    bias: bool = False

    @property
    def opening(self) -> int:
        """Columns of the first product: gate and up together."""
        return self.width * (2 if self.gated else 1)

    def parameters(self, hidden: int) -> int:
        """Elements of matrices and biases."""
        return hidden * (self.opening + self.width) + self.bias * (self.opening + hidden)

    def active_parameters(self, hidden: int) -> int:
        """Elements that one token uses: all."""
        return self.parameters(hidden)


class Experts(Struct, frozen=True):
    """A mixture of experts, ``chosen`` of ``count`` per token, and shared ones beside them."""

    count: int
    chosen: int
    width: int
    shared_width: int = 0  # of all shared experts together
    router_bias: bool = False
    bias: bool = False
    shared_gate: bool = False  # of the shared experts: one column
    gated: bool = True  # each has three matrices, else two
    latent: int = 0  # elements of what experts read of a token and write; matrices before and after them make it

    def read(self, hidden: int) -> int:
        """Elements of a token that an expert reads."""
        return self.latent or hidden

    @property
    def shared(self) -> DenseMlp:
        """The shared experts as one MLP, of no width if there are none."""
        return DenseMlp(self.shared_width, self.gated)

    def expert(self, split: int = 1) -> DenseMlp:
        """One expert, or the columns of it that one of some chips has."""
        return DenseMlp(self.width // split, self.gated, self.bias)

    def parameters(self, hidden: int) -> int:
        """Elements of router, all experts and shared experts."""
        return self._with(self.count, hidden)

    def active_parameters(self, hidden: int) -> int:
        """Elements that one token uses."""
        return self._with(self.chosen, hidden)

    def _with(self, experts: int, hidden: int) -> int:
        router, shared = self.count * (hidden + self.router_bias), self.shared.parameters(hidden)
        of_experts = experts * self.expert().parameters(self.read(hidden)) + 2 * self.latent * hidden
        return router + of_experts + shared + self.shared_gate * hidden


class Layer(Struct, frozen=True):
    """One layer: attention or a mixer, or both side by side; MLP or experts; and its norms. One of the two may be none.

    Attributes:
        attention: to the tokens of the sequence, or to an encoder's instead.
        mlp: after it.
        norms: before or after attention, MLP and products.
        norm_biases: whether its norms have biases.
        formats: of matrices that are stored otherwise than those of most layers.
        norm_weights: whether its norms have weights.
        extra_parameters: of vectors beside: norms within attention and MLP, parameters of activation functions.
        cross: attention to an encoder's tokens, between the other one and the MLP.
        products: beside attention and MLP.
        carried: further elements of a token that elementwise kernels read and write.
    """

    attention: Attention | LatentAttention | None
    mlp: DenseMlp | Experts | None
    norms: int = 2
    norm_biases: bool = False
    formats: ClassFormats = ()
    norm_weights: bool = True
    extra_parameters: int = 0
    cross: Attention | None = None
    mixer: Mixer | None = None
    products: tuple[Product, ...] = ()
    carried: int = 0

    @property
    def attentions(self) -> tuple[Attention | LatentAttention, ...]:
        """All attention of the layer, in order."""
        return tuple(one for one in (self.attention, self.cross) if one is not None)

    @property
    def mixing(self) -> tuple[Attention | LatentAttention | Mixer, ...]:
        """What mixes tokens: attention and a mixer."""
        return (*self.attentions, *(() if self.mixer is None else (self.mixer,)))

    @property
    def branches(self) -> int:
        """Residuals: one of attention and a mixer beside it, one of attention to an encoder, and one of the MLP."""
        is_mixing = self.attention is not None or self.mixer is not None
        return is_mixing + (self.cross is not None) + (self.mlp is not None)

    @property
    def name(self) -> str:
        """What it consists of, in reports."""
        mixing = [f"{' and '.join(map(_named, self.attentions))} attention"] * bool(self.attentions)
        mixing += [] if self.mixer is None else [self.mixer.rule.value]
        mlp = "experts" if isinstance(self.mlp, Experts) else "dense" if self.mlp is not None else ""
        formats = (f"{word} {form.name}" for word, form in self.formats)
        return ", ".join(filter(None, (" and ".join(mixing), mlp, *formats)))

    @property
    def product_parameters(self) -> int:
        """Elements of the products beside attention and MLP."""
        return sum(one.parameters for one in self.products)

    def norm_parameters(self, hidden: int) -> int:
        """Elements of the norms before or after attention and MLP, and of vectors beside."""
        return self.norms * hidden * (self.norm_weights + self.norm_biases) + self.extra_parameters


class LayerKind(Struct, frozen=True):
    """Layers that are the same."""

    layer: Layer
    count: int
    name: str


class Model(Struct, frozen=True, dict=True):
    """A decoder of a language model.

    Attributes:
        name: of the configuration.
        model_type: its family.
        hidden: elements of a token between layers.
        vocabulary: tokens that there are.
        layers: in order.
        tied: whether the head is the embedding.
        positions: learned positions, 0 without.
        norm_biases: whether the last norm has biases.
        norm_weights: whether the last norm has weights.
        vectors: elements of further norms and biases outside of layers.
        most_context: tokens of the longest sequence; 0: not said.
        embedded: elements of a row of the embedding and of the head, where products make them as many as ``hidden``.
        row_tables: elements of a row of further tables that are looked up by token, and how many rows there are.
        opening: products of every token before the layers.
        closing: products of every token after them.
        most_encoded: tokens that an encoder takes at most; 0: not said.
        notes: what the configuration left out and what was taken for it.
    """

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    layers: tuple[Layer, ...]
    tied: bool
    positions: int = 0
    norm_biases: bool = False
    norm_weights: bool = True
    vectors: int = 0
    most_context: int = 0
    embedded: int = 0
    row_tables: tuple[int, int] = (0, 0)
    opening: tuple[Product, ...] = ()
    closing: tuple[Product, ...] = ()
    most_encoded: int = 0
    notes: tuple[str, ...] = ()

    @property
    def end_parameters(self) -> int:
        """Elements of the last norm, and of further norms and biases outside of layers."""
        return self.hidden * (self.norm_weights + self.norm_biases) + self.vectors

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """Recurrent mixers of the layers that have one, in order."""
        return tuple(layer.mixer for layer in self.layers if layer.mixer is not None)

    @property
    def row(self) -> int:
        """Elements of a row of the embedding and of the head."""
        return self.embedded or self.hidden

    @property
    def has_simple_ends(self) -> bool:
        """Whether there are only an embedding before the layers, and a head after them."""
        return not (self.opening or self.closing or self.row_tables[0])

    @property
    def most_experts(self) -> int:
        """Experts of the layer that has most of them; 0 without any."""
        return max((layer.mlp.count for layer in self.layers if isinstance(layer.mlp, Experts)), default=0)

    @property
    def attentions(self) -> tuple[Attention | LatentAttention, ...]:
        """All attention of all layers."""
        return tuple(one for layer in self.layers for one in layer.attentions)

    @property
    def encoder_tokens(self) -> int:
        """Tokens of an encoder that each sequence attends to; 0 without an encoder."""
        reaches = (one.reach for one in self.attentions)
        return max((reach.extent for reach in reaches if reach.mask is Mask.ENCODER), default=0)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """Layers that are the same, in the order in which they come first."""
        kinds, names = [], Counter[str]()
        for layer, count in Counter(self.layers).items():
            name = layer.name
            names[name] += 1
            kinds.append(LayerKind(layer, count, name if names[name] == 1 else f"{name} #{names[name]}"))
        return tuple(kinds)


def _named(attention: Attention | LatentAttention) -> str:
    if isinstance(attention, LatentAttention):
        if not attention.chosen:
            return "latent"
        return f"latent {'shared ' if attention.indexer is None else ''}top-{attention.chosen}"
    return attention.reach.name if attention.kv_products else f"sharing {attention.reach.name}"


def with_encoder(model: Model, tokens: int) -> Model:
    """Return a model of which each sequence attends to so many tokens of its encoder."""
    reach = Reach(Mask.ENCODER, tokens)
    layers = []
    for layer in model.layers:
        attention, cross = layer.attention, layer.cross
        if attention is not None and attention.reach.mask is Mask.ENCODER:
            attention = replace(attention, reach=reach)
        layers.append(replace(layer, attention=attention, cross=None if cross is None else replace(cross, reach=reach)))
    return replace(model, layers=tuple(layers))


def with_formats(model: Model, formats: Sequence[ClassFormats]) -> Model:
    """Return a model whose layers have some matrices in other formats; none: as it is."""
    if not any(formats):
        return model
    layers = tuple(replace(layer, formats=one) for layer, one in zip(model.layers, formats, strict=True))
    return replace(model, layers=layers)
