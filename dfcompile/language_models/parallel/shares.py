"""What one chip has of a model and of a batch under degrees of parallelism."""

import math

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.experts import ExpertShare, chosen_shares, rank_imbalance, rank_imbalance_of
from dfcompile.records import replace


def share_of_layer(layer: Layer, degrees: Degrees) -> Layer:
    """Return a layer as large as one chip of a tensor group has it; the mixture of experts stays whole.

    Heads of keys and values that are fewer than the chips are held by several of them.

    Raises:
        InfeasibleError: a dimension does not divide; the message names it.
    """
    chips = degrees.tensor
    return replace(layer, attention=_attention(layer.attention, chips), mlp=_mlp(layer.mlp, degrees))


def _divided(name: str, extent: int, chips: int) -> int:
    if extent % chips:
        raise InfeasibleError(f"degrees: found {name} {extent}, which {chips} chips do not divide")
    return extent // chips


def _attention(attention: Attention | LatentAttention, chips: int) -> Attention | LatentAttention:
    heads = _divided("attention heads", attention.heads, chips)
    if isinstance(attention, LatentAttention):
        return replace(attention, heads=heads)  # the latents have no heads to share: every chip holds them whole
    if attention.kv_heads >= chips:
        return replace(attention, heads=heads, kv_heads=_divided("key-value heads", attention.kv_heads, chips))
    if chips % attention.kv_heads:
        raise InfeasibleError(f"degrees: found key-value heads {attention.kv_heads}, which do not divide {chips} chips")
    return replace(attention, heads=heads, kv_heads=1)


def _mlp(mlp: DenseMlp | Experts, degrees: Degrees) -> DenseMlp | Experts:
    if isinstance(mlp, DenseMlp):
        return replace(mlp, width=_divided("MLP width", mlp.width, degrees.tensor))
    _divided("experts", mlp.count, degrees.expert)
    _divided("expert width", mlp.width, degrees.expert_split)
    shared = _divided("shared experts' width", mlp.shared_width, degrees.tensor) if mlp.shared_width else 0
    return replace(mlp, shared_width=shared)


def share_of_batch(batch: Batch, degrees: Degrees) -> Batch:
    """Return the sequences of one micro-batch of one replica, and of each the part of one chip of a sequence group.

    A prompt is split into pieces, of which the middle one has the mean number of keys; of a decode the cache is split.
    """
    parts = degrees.data * degrees.micro_batches
    groups = tuple(_piece(replace(group, count=-(-group.count // parts)), degrees.sequence) for group in batch.groups)
    return replace(batch, groups=groups)


def _piece(group: Sequences, chips: int) -> Sequences:
    if chips == 1:
        return group
    if group.decodes:
        return replace(group, past=max(1, -(-group.context // chips) - 1))
    if group.new < chips:
        raise InfeasibleError(
            f"degrees: found {group.new} new tokens of a sequence against {chips} chips that share it"
        )
    new = -(-group.new // chips)
    return replace(group, past=group.past + (group.new - new) // 2, new=new)


def expert_share(mlp: Experts, batch: Batch, degrees: Degrees, choices: StepChoices) -> ExpertShare:
    """Return the experts of one chip, how many tokens meet them, and the load of the fullest chip.

    The tokens of as many replicas as hold the experts together meet there; chips of a sequence group have the same
    tokens while they decode.
    """
    together = max(1, degrees.expert_group // degrees.tensor)
    if batch.is_decode:
        together //= math.gcd(together, degrees.sequence)
    if choices.expert_shares:
        imbalance = rank_imbalance_of(chosen_shares(choices.expert_shares, mlp.chosen), degrees.expert)
    else:
        imbalance = rank_imbalance(mlp.count, mlp.chosen, batch.tokens * together, degrees.expert)
    return ExpertShare(degrees.expert, degrees.expert_split, together, imbalance)
