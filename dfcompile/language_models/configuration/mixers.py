"""Recurrent mixers of configurations: which fields say what each is made of [hf]."""

from msgspec import Struct

from dfcompile.language_models.configuration.composed import said
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.configuration.rows import Said
from dfcompile.language_models.mixer import Mixer, Rule
from dfcompile.records import replace

_AUTO = "auto"  # of a size: what the class derives
CHUNK = 64  # tokens of a chunk of the gated delta rule


def _derived(fields: Fields, name: str, derived: int) -> int:
    """Return a size that the file leaves out, or calls automatic, as its class derives it."""
    found = fields.stated(name)
    return derived if found == _AUTO else fields.count(name, derived=derived if found is None else None)


class MambaNames(Struct, frozen=True):
    """How a family names what its Mamba is made of; names that are empty are sizes that it does not have.

    Attributes:
        inner: of elements of all values; left out, `expand` times the hidden size.
        expand: of this factor.
        heads: of Mamba-2's heads.
        head: of elements of a head.
        groups: of groups of heads that share keys and queries.
        rank: of Mamba's time steps.
        step_norms: whether time steps, keys and queries of Mamba have norms.
        norm: of the elements of a norm of the results.
    """

    state: str = "mamba_d_state"
    taps: str = "mamba_d_conv"
    expand: str = "mamba_expand"
    inner: str = ""
    heads: str = "mamba_n_heads"
    head: str = "mamba_d_head"
    groups: str = "mamba_n_groups"
    chunk: str = "mamba_chunk_size"
    rank: str = ""
    step_norms: bool = False
    convolution_bias: str = "mamba_conv_bias"
    opening_bias: str = "mamba_proj_bias"
    closing_bias: str = "mamba_proj_bias"
    norm: Said = True


def mamba(names: MambaNames, fields: Fields, hidden: int) -> Mixer:
    """Return Mamba, every channel of which is a head of one element, or Mamba-2 where there are heads.

    Raises:
        UserError: a field is missing or wrong.
    """
    inner = fields.optional(names.inner) if names.inner else 0
    if not inner and names.expand:
        inner = fields.count(names.expand) * hidden
    state = fields.count(names.state)
    mixer = Mixer(
        Rule.SELECTIVE, inner, 1,
        key_dim=state,
        taps=fields.count(names.taps),
        convolution_bias=fields.flag(names.convolution_bias),
        opening_bias=fields.flag(names.opening_bias),
        closing_bias=fields.flag(names.closing_bias),
        head_vectors=state + 2,
    )  # fmt: skip
    if names.rank:
        rank = _derived(fields, names.rank, -(-hidden // 16))
        return replace(mixer, rank=rank, norm_parameters=names.step_norms * (rank + 2 * state))
    heads = fields.count(names.heads)
    head = _derived(fields, names.head, inner // heads)
    if inner and heads * head != inner:
        raise fields.wrong(names.heads, f"{heads} heads of {head} elements against {inner}")
    groups = fields.count(names.groups)
    if heads % groups:
        raise fields.wrong(names.groups, f"{groups} groups that do not divide the {heads} of {names.heads}")
    norm = head * said(fields, names.norm)
    return replace(
        mixer, rule=Rule.DUAL, heads=heads, value_dim=head, groups=groups, head_columns=1, head_vectors=3 + norm,
        chunk=fields.count(names.chunk),
    )  # fmt: skip


def gated_delta(fields: Fields, hidden: int) -> Mixer:
    """Return the gated delta rule of Qwen3-Next; heads of keys are shared by heads of values.

    Raises:
        UserError: a field is missing or wrong.
    """
    of_attention = fields.count("num_attention_heads")
    groups = _derived(fields, "linear_num_key_heads", of_attention)
    heads = _derived(fields, "linear_num_value_heads", of_attention)
    fields.dividing("linear_num_key_heads", groups, heads, "linear_num_value_heads")
    key = _derived(fields, "linear_key_head_dim", 3 * hidden // (4 * groups))
    value = _derived(fields, "linear_value_head_dim", 2 * key)
    return Mixer(
        Rule.DELTA, heads, value, groups, key,
        head_columns=2, taps=fields.count("linear_conv_kernel_dim"), head_vectors=2, norm_parameters=value,
        chunk=CHUNK,
    )  # fmt: skip


def lightning(fields: Fields, hidden: int) -> Mixer:
    """Return the lightning attention of MiniMax, as many heads as attention has.

    Raises:
        UserError: a field is missing or wrong.
    """
    heads = fields.count("num_attention_heads")
    dim = _derived(fields, "head_dim", hidden // heads)
    chunk = fields.count("block_size")
    return Mixer(Rule.LIGHTNING, heads, dim, heads, dim, head_vectors=dim, chunk=chunk, state=None)


def rg_lru(fields: Fields, hidden: int) -> Mixer:
    """Return the RG-LRU of RecurrentGemma, whose gates are matrices of every head.

    Raises:
        UserError: a field is missing or wrong.
    """
    heads = fields.count("num_attention_heads")
    width = fields.count("lru_width", derived=hidden)
    if width % heads:
        raise fields.wrong("lru_width", f"{width}, which the {heads} of num_attention_heads do not divide")
    return Mixer(
        Rule.LRU, heads, width // heads, 0, 1,
        blocks=2, taps=fields.count("conv1d_width"), convolution_bias=True, opening_bias=True, closing_bias=True,
        head_vectors=3 * width // heads,
    )  # fmt: skip


def short_convolution(fields: Fields, hidden: int) -> Mixer:
    """Return the short convolution of LFM2, between two gates.

    Raises:
        UserError: a field is missing or wrong.
    """
    taps, bias = fields.count("conv_L_cache"), fields.flag("conv_bias")
    return Mixer(
        Rule.CONVOLUTION, hidden, 1,
        gates=2, taps=taps, convolution_bias=bias, opening_bias=bias, closing_bias=bias,
    )  # fmt: skip
