"""Degrees of parallelism: which chips of the network a group has, what collectives take there, and a chip's share."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.machines.device import LinkLevel
from dfcompile.language_models.mixer import Mixer
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer, Mask
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import ExpertShare, chosen_shares, rank_imbalance, rank_imbalance_of
from dfcompile.language_models.times.calibrated import AllReduce
from dfcompile.records import replace

Group = tuple[LinkLevel, ...]  # chips of a group along each dimension of the network that it has several in


class Degrees(Struct, frozen=True):
    """How many chips share what.

    Groups lie in the network in this order, the first ones next to each other: tensor, sequence, data, pipeline.
    Experts are spread over chips of the first three.

    Attributes:
        tensor: chips that share heads, columns and vocabulary.
        sequence: chips that share the context of a sequence.
        data: replicas, each with sequences of its own.
        pipeline: stages of layers.
        expert: chips over which experts are spread.
        micro_batches: parts of a replica's sequences that follow each other through the stages.
    """

    tensor: int = 1
    sequence: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    micro_batches: int = 1

    @property
    def chips(self) -> int:
        """All chips."""
        return self.tensor * self.sequence * self.data * self.pipeline

    @property
    def stage_chips(self) -> int:
        """Chips of one stage."""
        return self.tensor * self.sequence * self.data

    @property
    def expert_split(self) -> int:
        """Chips that share the columns of each expert: those of the tensor group that hold no other experts."""
        return self.tensor // math.gcd(self.tensor, self.expert)

    @property
    def expert_group(self) -> int:
        """Chips that hold every expert once."""
        return self.expert * self.expert_split

    @property
    def name(self) -> str:
        """Degrees above 1 as text."""
        counts = {"TP": self.tensor, "SP": self.sequence, "DP": self.data, "PP": self.pipeline, "EP": self.expert}
        shown = [f"{word}{count}" for word, count in counts.items() if count > 1]
        if self.pipeline > 1:
            shown.append(f"{self.micro_batches} micro-batches")
        return " ".join(shown) or "one chip"


class Impossible:
    """Choices that are not possible, tried in ``with`` blocks: how many, and the error of the one that needs least."""

    def __init__(self) -> None:
        self.count = 0
        self._nearest: InfeasibleError | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, InfeasibleError):
            return False
        self.count += 1
        if self._nearest is None or error.enough < self._nearest.enough:
            self._nearest = error
        return True

    @property
    def error(self) -> InfeasibleError:
        """The error where nothing is possible."""
        return self._nearest or InfeasibleError("degrees: found none for so many chips")


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a number, the smallest first."""
    low = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return tuple(low + [number // one for one in reversed(low) if one * one != number])


def all_degrees(chips: int, *, experts: int, layers: int, sequences: int) -> Iterator[Degrees]:
    """Yield every choice for so many chips; micro-batches are one, or a multiple of the stages.

    Args:
        chips: of the machine.
        experts: of the model; 0 without.
        layers: of the model.
        sequences: of a step.
    """
    for tensor in divisors(chips):
        for sequence in divisors(chips // tensor):
            for data in divisors(chips // tensor // sequence):
                pipeline = chips // tensor // sequence // data
                if data > sequences or pipeline > layers:
                    continue
                for expert in _expert_degrees(tensor, sequence * data, experts):
                    for parts in _micro_batches(pipeline, -(-sequences // data)):
                        yield Degrees(tensor, sequence, data, pipeline, expert, parts)


def _expert_degrees(tensor: int, beside: int, experts: int) -> Iterator[int]:
    for expert in divisors(tensor * beside) if experts else (1,):
        spread = expert // math.gcd(tensor, expert)
        if experts % expert == 0 and beside % spread == 0:
            yield expert


def _micro_batches(pipeline: int, sequences: int) -> Iterator[int]:
    yield 1
    if pipeline > 1:
        yield from (parts for parts in (pipeline, 2 * pipeline, 4 * pipeline) if parts <= sequences)


def used_links(links: tuple[LinkLevel, ...], chips: int, where: str) -> tuple[LinkLevel, ...]:
    """Return the part of a network that so many chips use: inner dimensions are filled first.

    Raises:
        InfeasibleError: no part of the network has so many chips.
    """
    if chips == 1:
        return ()
    most = tuple(link.chips for link in links)
    parts = product(*([count for count in divisors(chips) if count <= room] for room in most))
    found = [one for one in parts if math.prod(one) == chips]
    if not found:
        sizes = " x ".join(map(str, most)) or "1"
        raise InfeasibleError(f"system {where!r}: found {chips} chips against parts of its {sizes}")
    return tuple(replace(link, chips=count) for link, count in zip(links, max(found), strict=True) if count > 1)


def group_of(links: tuple[LinkLevel, ...], stride: int, chips: int) -> Group | None:
    """Return the group of so many chips, each ``stride`` after the one before; none if it lies across dimensions."""
    found: list[LinkLevel] = []
    for link in links:
        skipped = math.gcd(stride, link.chips)
        if stride > 1 and skipped != min(stride, link.chips):
            return None
        stride //= skipped
        room = link.chips // skipped
        if stride > 1 or room == 1 or chips == 1:
            continue
        taken = math.gcd(chips, room)
        if taken != min(chips, room):
            return None
        chips //= taken
        found.append(replace(link, chips=taken))
        if taken < room:
            break
    return tuple(link for link in found if link.chips > 1) if chips == 1 else None


def share_of_layer(layer: Layer, degrees: Degrees) -> Layer:
    """Return a layer as large as one chip of a tensor group has it; the mixture of experts stays whole.

    Heads of keys and values that are fewer than the chips are held by several of them.

    Raises:
        InfeasibleError: a dimension does not divide, or a context that chips share has a state; the message names it.
    """
    for one in layer.attentions if degrees.sequence > 1 else ():
        is_chosen = isinstance(one, LatentAttention) and one.chosen
        if is_chosen or one.reach.mask is Mask.ENCODER:
            found = f"{degrees.sequence} chips that share a sequence"
            which = "chosen tokens" if is_chosen else "an encoder's tokens"
            raise InfeasibleError(f"degrees: found {found} against 1, where layers attend to {which}")
    attention = None if layer.attention is None else _attention(layer.attention, degrees.tensor)
    cross = None if layer.cross is None else _grouped(layer.cross, degrees.tensor)
    mlp = None if layer.mlp is None else _mlp(layer.mlp, degrees)
    mixer = None if layer.mixer is None else _mixer(layer.mixer, degrees)
    return replace(layer, attention=attention, cross=cross, mlp=mlp, mixer=mixer)


def _divided(name: str, extent: int, chips: int) -> int:
    if extent % chips:
        raise InfeasibleError(f"degrees: found {name} {extent}, which {chips} chips do not divide")
    return extent // chips


def _attention(attention: Attention | LatentAttention, chips: int) -> Attention | LatentAttention:
    if isinstance(attention, Attention):
        return _grouped(attention, chips)
    # The latents have no heads to share: every chip holds them whole.
    return replace(attention, heads=_divided("attention heads", attention.heads, chips))


def _grouped(attention: Attention, chips: int) -> Attention:
    heads = _divided("attention heads", attention.heads, chips)
    return replace(attention, heads=heads, kv_heads=_shared("key-value heads", attention.kv_heads, chips))


def _shared(name: str, count: int, chips: int) -> int:
    """Return how many of what heads share a chip has: if there are fewer than chips, several chips hold the same."""
    if count >= chips:
        return _divided(name, count, chips)
    if chips % count:
        raise InfeasibleError(f"degrees: found {name} {count}, which do not divide {chips} chips")
    return 1


def _mixer(mixer: Mixer, degrees: Degrees) -> Mixer:
    """Return the heads of one chip; what is closed by the matrix of time steps, keys and queries is summed up."""
    if degrees.sequence > 1:
        found = f"a recurrent mixer ({mixer.rule.value}), whose state follows all tokens before"
        raise InfeasibleError(f"degrees: found {found}, against {degrees.sequence} chips that share a context")
    heads = _divided(f"heads of {mixer.rule.value}", mixer.heads, degrees.tensor)
    groups = _shared(f"groups of {mixer.rule.value}", mixer.groups, degrees.tensor) if mixer.groups else 0
    return replace(mixer, heads=heads, groups=groups)


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
        found = f"{group.new} new tokens of a sequence"
        raise InfeasibleError(f"degrees: found {found} against {chips} chips that share it")
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


class Collectives:
    """Seconds of collectives on a machine.

    The back end's formulas are per dimension: what inner ones reduced goes on outside [ko24]. A fitted all-reduce is
    taken inside the innermost dimension, where it was measured.
    """

    def __init__(self, latency_s: float, fitted: AllReduce | None, innermost: int) -> None:
        self._latency_s = latency_s
        self._fitted = fitted
        self._innermost = innermost

    def all_reduce(self, group: Group, amount: float) -> float:
        """Return the seconds of the sum of so many bytes on every chip."""
        chips = math.prod(link.chips for link in group)
        if self._fitted is not None and 1 < chips <= self._innermost:
            return self._fitted.seconds(chips, amount)
        return self._taken(group, _reduce_s_per_byte, amount, 2)

    def all_gather(self, group: Group, amount: float) -> float:
        """Return the seconds until every chip has all of so many bytes."""
        return self._taken(group, _reduce_s_per_byte, amount / 2, 1)

    def all_to_all(self, group: Group, amount: float) -> float:
        """Return the seconds until so many bytes, all chips' together, stand with whom they are for."""
        return self._taken(group, _exchange_s_per_byte, amount, 1)

    def _taken(self, group: Group, s_per_byte: Callable[[Group], float], amount: float, phases: int) -> float:
        if not group:
            return 0.0
        hops = sum(1 if link.kind == "fc" else link.chips - 1 for link in group)
        return amount * s_per_byte(group) + phases * self._latency_s * hops

    def send(self, group: Group, amount: float) -> float:
        """Return the seconds of so many bytes from one stage to the next, over the slowest link between them."""
        return self._latency_s + amount / min(link.bytes_per_s for link in group)


@lru_cache(maxsize=1024)
def _reduce_s_per_byte(links: Group) -> float:
    from dfcompile.dfmodel_backend.machine.network.collective_times import everywhere_ns_per_byte
    from dfcompile.dfmodel_backend.machine.system import Link

    groups = [Link(link.kind, link.chips, link.bytes_per_s * 1e-9, "TP", 0.0) for link in links]
    return everywhere_ns_per_byte(groups, separate_phases=True) * 1e-9


@lru_cache(maxsize=1024)
def _exchange_s_per_byte(links: Group) -> float:
    from dfcompile.dfmodel_backend.machine.network.collective_times import exchange_ns_per_byte
    from dfcompile.dfmodel_backend.machine.network.topologies import topology

    shape = topology("_".join(link.kind for link in links))
    seconds = exchange_ns_per_byte(shape, [link.chips for link in links], [link.bytes_per_s * 1e-9 for link in links])
    return seconds * 1e-9
