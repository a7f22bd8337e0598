"""Families as rows of a table: how a class differs from the usual decoder, and which fields of a file say it [hf].

The usual decoder has grouped attention and a gated MLP between two norms.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.model import Layer

Said = bool | str  # a truth value of the class, or the field that says it
Names = tuple[str, ...]  # of a field, in order of preference


class Mixture(Struct, frozen=True):
    """Experts of a family.

    Attributes:
        width: field of one expert's.
        shared_count: field of how many experts of that width all tokens use; a number if the class has so many.
        shared_width: field of the width of all shared experts together.
        shared_gate: whether the shared experts have a gate of their own.
        router_bias: whether each expert has a bias in the router, be it for balance alone.
        least: experts that make a mixture; if there are fewer, tokens have the shared ones alone, or the family's MLP.
        first_dense: field of how many layers at the beginning have none; a number if the class has so many.
        every: field of the period of layers that have some.
        offset: field of which layer of a period has some; the last one without.
        dense: field of a list of layers that have none.
        last: field of the last layer that has some; below 0 counted from the end.
    """

    width: str = "moe_intermediate_size"
    shared_count: str | int = 0
    shared_width: str = ""
    shared_gate: bool = False
    router_bias: bool = False
    least: int = 0
    first_dense: str | int = 0
    every: str = ""
    offset: str = ""
    dense: str = ""
    last: str = ""


class Windows(Struct, frozen=True):
    """Which layers of a family see a window, where the file has no `layer_types`.

    Attributes:
        period: full attention once in so many layers: a number, or the field of it; 0: nowhere.
        is_first: whether it is the first of them rather than the last.
        before: field of how many layers at the beginning are full.
    """

    period: int | str = 0
    is_first: bool = False
    before: str = ""


class Family(Struct, frozen=True, kw_only=True):
    """A row: how a class differs from the usual decoder.

    Attributes:
        hidden: fields of the elements of a token.
        layers: fields of their number.
        heads: fields of query heads.
        kv_heads: fields of heads of keys and values; none: as many as query heads.
        single_kv: a field that makes them one.
        width: fields of the MLP's; left out or null it is ``4 hidden``, if ``widens``.
        widens: whether the MLP's width has that default.
        adjusted_width: what the class makes of the width.
        gated: whether the MLP has three matrices.
        qkv_bias: of queries, keys and values.
        key_bias: of keys, where queries and values have biases.
        output_bias: of the attention's last matrix.
        mlp_bias: of all matrices of the MLP.
        gate: whether the results of attention pass a gate as wide as they are.
        gate_bias: of the gate.
        head_gate: whether the results of each head pass a gate of one column.
        qk_norm: whether queries and keys have norms, of a head each, or of all heads if ``whole_norm``.
        whole_norm: whether these norms are of all heads.
        sinks: whether each head has one.
        norms: of a layer; 1 where attention and MLP stand side by side.
        side_by_side: a field that makes it so.
        more_norms: a field that adds norms after attention and MLP.
        norm_weights: whether norms have weights.
        norm_biases: whether they have biases.
        extra: further elements of a layer as ``(heads x head, kv heads x head, head, hidden, width, 1)`` times these.
        positions: fields of learned positions; empty: none.
        further_positions: that the class adds.
        tied: fields of whether the head is the embedding.
        head_bias: of the head.
        embedding_norm: whether a norm follows the embedding.
        last_norm: whether a norm precedes the head.
        encoder: fields of the tokens of an encoder that every layer attends to as well; none: there is no encoder.
        may_cross: whether there may be one all the same, of images, for which each layer has one more norm.
        windows: which layers see a window; none: all are full.
        experts: instead of the MLP.
        mixing: puts recurrent mixers in the place of attention, or beside it.
        refused: fields that have to be as here, or left out.
    """

    hidden: Names = ("hidden_size",)
    layers: Names = ("num_hidden_layers",)
    heads: Names = ("num_attention_heads",)
    kv_heads: Names = ("num_key_value_heads",)
    single_kv: str = ""
    width: Names = ("intermediate_size",)
    widens: bool = False
    adjusted_width: Callable[[Fields, int], int] | None = None
    gated: bool = True
    qkv_bias: Said = False
    key_bias: bool = True
    output_bias: Said = False
    mlp_bias: Said = False
    gate: bool = False
    gate_bias: Said = False
    head_gate: Said = False
    qk_norm: Said = False
    whole_norm: bool = False
    sinks: bool = False
    norms: int = 2
    side_by_side: str = ""
    more_norms: str = ""
    norm_weights: bool = True
    norm_biases: bool = False
    extra: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
    positions: Names = ()
    further_positions: int = 0
    tied: Names = ("tie_word_embeddings",)
    head_bias: Said = False
    embedding_norm: bool = False
    last_norm: bool = True
    encoder: Names = ()
    may_cross: bool = False
    windows: Windows | None = None
    experts: Mixture | None = None
    mixing: Callable[[Fields, tuple[Layer, ...]], tuple[Layer, ...]] | None = None
    refused: Mapping[str, object] = {}
