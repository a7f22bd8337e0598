"""Bytes and times of each configuration of a design, per input and layer, recomputed for checkers and audit [ko24].

Exchanges between chips follow from `check.collectives`, which shares no formula with the evaluator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.check import collectives
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Kernels, statistics_of
from dfcompile.dfmodel_backend.check.requirements import combined_ns
from dfcompile.dfmodel_backend.evaluate.designs import StepFigures
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel, Dim, WorkloadKind
from dfcompile.records import replace

Sent = tuple[DesignKernel, Collective, float]  # kernel, collective behind it, bytes of a tile
PERIODIC = Collective.ALL_REDUCE_PERIODIC  # of gradients, once per batch


def network_ns(decided: DecidedDesign, kernels: Kernels) -> float:
    """Return the time of a configuration's exchanges, or a lower bound where `check.collectives.is_known` is false."""
    machine, batch = decided.design.machine, decided.design.execution.batch
    links, kind, chips = machine.links, batch.kind, decided.groups.chips
    if kind is WorkloadKind.LLM:
        return _language_model_ns(decided, kernels)
    if kind is WorkloadKind.HPL:
        across, down = _linpack_bytes(decided, kernels)
        return max(down / links[0].gb_per_s, across / links[-1].gb_per_s)
    exchanged = _stated_bytes(kernels, Collective.ALL_TO_ALL)
    match kind:
        case WorkloadKind.FFT:
            exchanged /= chips**2
        case WorkloadKind.DLRM:
            exchanged /= 1 if decided.compatibility.all_to_all_as_given else chips
        case _:
            assert_never(kind)
    total = exchanged * collectives.exchange_ns_per_byte(machine.topology, links, decided.compatibility)
    gradients = _stated_bytes(kernels, PERIODIC)
    if kind is WorkloadKind.DLRM:
        gradients /= batch.global_batch / chips
    return total + gradients * _gradient_ns_per_byte_everywhere(decided)


def network_bytes(decided: DecidedDesign, kernels: Kernels) -> float:
    """Return the bytes that a chip exchanges in a configuration."""
    batch, chips = decided.design.execution.batch, decided.groups.chips
    if batch.kind is WorkloadKind.LLM:
        return _language_model_bytes(decided, kernels)
    if chips == 1 and not decided.compatibility.lone_chip_communicates:
        return 0.0
    if batch.kind is WorkloadKind.HPL:
        return sum(_linpack_bytes(decided, kernels))
    exchanged, gradients = _stated_bytes(kernels, Collective.ALL_TO_ALL), _stated_bytes(kernels, PERIODIC)
    if batch.kind is WorkloadKind.FFT:
        return (exchanged + gradients) / chips**2
    return exchanged + gradients / (batch.global_batch / chips)


def _stated_bytes(kernels: Kernels, collective: Collective) -> float:
    """Return the bytes of one kind of collective that the design's file states of the kernels."""
    return sum((kernel.collective_bytes for kernel in kernels if kernel.collective is collective), 0.0)


def _linpack_bytes(decided: DecidedDesign, kernels: Kernels) -> tuple[float, float]:
    """Return the bytes that a chip of High-Performance Linpack's grid sends across its row and down its column."""
    rows, columns = decided.sides
    sending = [kernel for kernel in kernels if kernel.collective is not Collective.NONE]
    across = sum(kernel.collective_bytes for kernel in sending)
    down = sum(kernel.collective_bytes for kernel in sending if kernel.collective_2 is Collective.POINT_TO_POINT)
    return across / rows if rows > 1 else 0.0, down / columns if columns > 1 else 0.0


def _links_of_group(decided: DecidedDesign, name: str) -> Link | None:
    """Return the links of a group, TP, DP or SP; None if it has one chip."""
    link = decided.groups.links.get(name)
    return link if link is not None and link.chips > 1 else None


def _language_model_ns(decided: DecidedDesign, kernels: Kernels) -> float:
    """Return the time of exchanges in the tensor, data and sequence parallel groups, which take place at once."""
    machine, compatibility = decided.design.machine, decided.compatibility
    tensor, data, sequence = (_links_of_group(decided, name) for name in ("TP", "DP", "SP"))
    tiles, sent = decided.tiles_of(kernels), _sent_by(decided, kernels)
    rounds = _rounds(decided, compatibility.all_reduce_factor)
    tensor_ns = data_ns = sequence_ns = 0.0
    if tensor is not None:
        around = collectives.once_around(tensor, tensor.chips) / tensor.gb_per_s
        exchange = collectives.exchange_in_group(tensor, by_share=compatibility.layouts_change_by_share)
        tensor_ns = tiles * (
            _bytes_of(sent, Collective.ALL_REDUCE) * _tensor_ns_per_byte(decided, tensor, rounds)
            + _whole_bytes(decided, sent, Collective.ALL_GATHER) * around
            + _whole_bytes(decided, sent, Collective.ALL_TO_ALL) * exchange
        )
        if len(machine.links) != 3 or not 0 < machine.domain_chips < tensor.chips:  # over domains: without latency
            kinds = [kind for _, kind, _ in sent]
            passes = rounds * kinds.count(Collective.ALL_REDUCE)
            if not compatibility.gathers_without_latency:
                passes += kinds.count(Collective.ALL_GATHER) + kinds.count(Collective.ALL_TO_ALL)
            tensor_ns += passes * machine.link_latency_ns * collectives.hops(tensor)
    if data is not None:
        gradients = sum(size * decided.tiles_of_output(kernel) for kernel, kind, size in sent if kind is PERIODIC)
        data_ns = gradients / decided.groups.micro_batches * _gradient_ns_per_byte(decided, data)
    if compatibility.network_is_sum:
        return tensor_ns + data_ns
    if sequence is not None:
        around = collectives.once_around(sequence, sequence.chips) / sequence.gb_per_s
        passed_bytes = sum(_rounds_of(kernel.collective_2, rounds) * decided.output_bytes(kernel) for kernel in kernels)
        sequence_ns = tiles * around * passed_bytes
    return max(tensor_ns, data_ns, sequence_ns)


def _language_model_bytes(decided: DecidedDesign, kernels: Kernels) -> float:
    """Return the bytes that a chip of a language model exchanges; gradients are shared by the micro-batches."""
    groups, compatibility, total = decided.groups, decided.compatibility, 0.0
    tiles, sent = decided.tiles_of(kernels), _sent_by(decided, kernels)
    if groups.tensor > 1 or compatibility.lone_chip_communicates:
        converted = sum(_whole_bytes(decided, sent, kind) for kind in (Collective.ALL_GATHER, Collective.ALL_TO_ALL))
        total += tiles * (_bytes_of(sent, Collective.ALL_REDUCE) + converted)
    if groups.data > 1 or compatibility.lone_chip_communicates:
        gradients = [(kernel, size) for kernel, kind, size in sent if kind is PERIODIC]
        total += sum(size * decided.tiles_of_output(kernel) / groups.micro_batches for kernel, size in gradients)
    if groups.sequence > 1 or compatibility.lone_chip_communicates:
        total += tiles * sum(decided.output_bytes(kernel) for kernel in kernels if _rounds_of(kernel.collective_2, 1))
    return total


def _sent_by(decided: DecidedDesign, kernels: Kernels) -> list[Sent]:
    """Return the exchanges behind each kernel of a language model: its own, changes of its layout, its statistics."""
    word, is_split = decided.design.execution.word_bytes, decided.groups.tensor > 1
    sent = []
    for kernel in kernels:
        rows, _, columns = decided.extents(kernel)
        kinds = [needed for producer, needed in decided.conversions if producer == kernel.id]
        if kernel.collective is not Collective.NONE:
            kinds.append(kernel.collective)
        elif is_split and decided.split(kernel) is Dim.K:
            kinds.append(Collective.ALL_REDUCE)
        sent += [(kernel, kind, float(rows * columns * word)) for kind in kinds]
        if is_split and decided.design.shards_kernels and not decided.compatibility.layouts_by_letter:
            count = statistics_of(kernel, decided.split(kernel), rows, columns)
            if count:
                sent.append((kernel, Collective.ALL_REDUCE, float(count * word)))
    return sent


def _bytes_of(sent: Sequence[Sent], collective: Collective) -> float:
    return sum((size for _, kind, size in sent if kind is collective), 0.0)


def _whole_bytes(decided: DecidedDesign, sent: Sequence[Sent], collective: Collective) -> float:
    """Return the bytes of one kind of collective, of whole tensors: a chip holds a part of those of split kernels."""
    parts = 1 if decided.compatibility.layouts_change_by_share else decided.groups.tensor
    split = (Dim.OUTER, Dim.M, Dim.N)
    sizes = (
        size * (parts if decided.split(kernel) in split else 1) for kernel, kind, size in sent if kind is collective
    )
    return sum(sizes, 0.0)


def _rounds(decided: DecidedDesign, dfmodel_rounds: int) -> int:
    """Return how often a tensor goes around to be reduced: twice if reduce-scatter and all-gather are separate."""
    return dfmodel_rounds or 1 + decided.design.execution.separate_reduce_scatter


def _rounds_of(collective: Collective, rounds: int) -> int:
    """Return how often a tensor goes around in a collective of a sequence parallel group."""
    return {Collective.ALL_REDUCE: rounds, Collective.ALL_GATHER: 1}.get(collective, 0)


def _tensor_ns_per_byte(decided: DecidedDesign, tensor: Link, rounds: int) -> float:
    links, domain = decided.design.machine.links, decided.design.machine.domain_chips
    if domain and len(links) == 3:
        outer = Link(links[1].shape, tensor.chips, links[1].gb_per_s, "", 0.0)
        return _in_domains(decided, outer, (rounds, rounds))
    return rounds * collectives.once_around(tensor, tensor.chips) / tensor.gb_per_s


def _gradient_ns_per_byte(decided: DecidedDesign, data: Link) -> float:
    links, domain = decided.design.machine.links, decided.design.machine.domain_chips
    if domain and len(links) == 3:
        return _in_domains(decided, data, (_rounds_on(decided, links[0].shape), _rounds_on(decided, data.shape)))
    return _rounds_on(decided, data.shape) * collectives.once_around(data, data.chips) / data.gb_per_s


def _rounds_on(decided: DecidedDesign, shape: str) -> int:
    """Return how often gradients go around a dimension of the network of this shape."""
    if shape == "fc" and decided.compatibility.periodic_factor_ignored_when_fully_connected:
        return 1
    return _rounds(decided, decided.compatibility.periodic_factor)


def _in_domains(decided: DecidedDesign, outer: Link, rounds: tuple[int, int]) -> float:
    """Return the time per byte of a reduction in each domain, over the innermost links, and then between domains."""
    inner, domain, count = decided.design.machine.links[0], decided.design.machine.domain_chips, outer.chips
    if decided.compatibility.domain_ignores_factor_and_kind:
        inner, outer, rounds = replace(inner, shape="r"), replace(outer, shape="r"), (1, 1)
    inner_chips = min(domain, count)
    time = rounds[0] * collectives.once_around(inner, inner_chips) / inner.gb_per_s if inner_chips > 1 else 0.0
    if domain < count:
        time += rounds[1] * collectives.between_domains(outer, count, domain) / outer.gb_per_s
    return time


def _gradient_ns_per_byte_everywhere(decided: DecidedDesign) -> float:
    """Return the time per byte to reduce gradients over all chips; each dimension leaves outer ones its share."""
    if decided.compatibility.periodic_bandwidth_forgotten:
        return decided.compatibility.periodic_factor or 1
    time, share = 0.0, 1.0
    for link in decided.design.machine.links:
        if link.chips > 1 or decided.compatibility.lone_chip_communicates:
            time += share * _rounds_on(decided, link.shape) * collectives.once_around(link, link.chips) / link.gb_per_s
        share /= link.chips
    return time


class Step(Struct, frozen=True):
    """Recomputed figures of a configuration, per input and layer.

    Attributes:
        stage: number of its pipeline stage.
        kernels: in the order of the file.
        tiles: how many run one after another.
        runs: how often all tiles run: once per input, if a kernel takes several inputs.
        traffic: bytes that each kernel reads from DRAM and writes to it, by its id.
        live_bytes: bytes of tensors that wait in DRAM meanwhile.
        sram_bytes: SRAM in use.
        network_bytes: bytes that a chip exchanges.
        compute_ns: computing, on the cores that each kernel was given.
        memory_ns: DRAM traffic.
        network_ns: exchanges.
        time_ns: all three, as far as they overlap, times ``runs``.
    """

    stage: int
    kernels: tuple[DesignKernel, ...]
    tiles: int
    runs: int
    traffic: Mapping[int, float]
    live_bytes: float
    sram_bytes: float
    network_bytes: float
    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float

    @property
    def dram_bytes(self) -> float:
        """Bytes that all kernels read from DRAM and write to it."""
        return sum(self.traffic.values())


def steps_of(decided: DecidedDesign, reported: Sequence[StepFigures]) -> tuple[Step, ...]:
    """Recompute the configurations of a design.

    Args:
        decided: the design and the decision.
        reported: figures of each configuration, of which only ``weight_tiles`` and ``compute_ns``, checked elsewhere,
            are used; and ``network_ns`` on networks that no table knows (`check.collectives.is_known`).
    """
    return tuple(_step(decided, number, figures) for number, figures in enumerate(reported))


def _step(decided: DecidedDesign, number: int, reported: StepFigures) -> Step:
    design, kernels = decided.design, decided.configuration(number)
    tiles = decided.tiles_of(kernels)
    runs = max([1, *(kernel.num_input for kernel in kernels)])
    traffic = _traffic_of(decided, kernels, reported.weight_tiles)
    memory_ns = sum(traffic.values()) / design.machine.dram_gb_per_s
    exchange_ns = reported.network_ns
    if kernels and collectives.is_known(design.machine.topology, design.machine.links):
        exchange_ns = network_ns(decided, kernels)
    times = [
        time_ns if kind in design.execution.counted else 0.0
        for kind, time_ns in zip("CMN", (reported.compute_ns, memory_ns, exchange_ns), strict=True)
    ]
    return Step(
        stage=decided.decision.stages[number] if decided.decision.stages else 0,
        kernels=kernels,
        tiles=tiles,
        runs=runs,
        traffic=traffic,
        live_bytes=_live_bytes(decided, number) * tiles if kernels else 0.0,
        sram_bytes=sram_of(decided, kernels, reported.weight_tiles),
        network_bytes=network_bytes(decided, kernels),
        compute_ns=reported.compute_ns,
        memory_ns=memory_ns,
        network_ns=exchange_ns,
        time_ns=runs * combined_ns(design.execution.overlap, *times),
    )


def _edges_at(decided: DecidedDesign, kernels: Kernels) -> Iterator[tuple[DesignEdge, bool, bool]]:
    """Yield each connection of a configuration, and whether it starts and ends in it."""
    ids = {kernel.id for kernel in kernels}
    for edge in decided.design.edges:
        if edge.source in ids or edge.target in ids:
            yield edge, edge.source in ids, edge.target in ids


def sram_of(decided: DecidedDesign, kernels: Kernels, weight_tiles: int) -> float:
    """Return the SRAM that a configuration needs: two tiles per tensor across its border, tiles in flight, weights."""
    edges = decided.design.edges
    weighted = [kernel.id for kernel in decided.design.kernels if kernel.has_weight]
    sram = 0.0
    for edge, starts, ends in _edges_at(decided, kernels):
        sized = edge
        if decided.compatibility.sram_of_other_edges and edge.source in weighted:  # the edge numbered as its weight
            number = weighted.index(edge.source)
            sized = edges[number] if number < len(edges) else edge
        size = decided.edge_bytes(sized)
        if starts != ends:
            sram += 2 * size / (weight_tiles if starts else 1)
        else:
            sram += (decided.levels[sized.target] - decided.levels[sized.source] + 1) * size
    for kernel in kernels:
        sram += (0 if kernel.skip_weight else decided.weight_bytes(kernel)) / weight_tiles + kernel.sram_extra_bytes
    return sram


def _traffic_of(decided: DecidedDesign, kernels: Kernels, weight_tiles: int) -> dict[int, float]:
    """Return the bytes that each kernel of a configuration reads from DRAM and writes to it, by its id."""
    compatibility, micro_batch = decided.compatibility, max(1, decided.design.execution.batch.micro_batch)
    tiles = decided.tiles_of(kernels)
    moves = 1 if compatibility.streams_read_once else weight_tiles  # of a tensor across the border, per tile
    if decided.design.machine.pmu is not None and compatibility.kernels_multiply_traffic:
        moves += len(kernels) - 1
    traffic = {kernel.id: kernel.memory_bytes for kernel in kernels}
    for edge, starts, ends in _edges_at(decided, kernels):
        if starts != ends:
            traffic[edge.source if starts else edge.target] += tiles * moves * decided.edge_bytes(edge)
    for kernel in kernels:
        if not (kernel.memory_bytes or kernel.skip_weight or compatibility.weights_not_read):
            read = decided.weight_bytes(kernel) * decided.tiles_of_weight(kernel)
            traffic[kernel.id] += read / max(1, kernel.num_input) / micro_batch
        if kernel.collective is PERIODIC and not compatibility.gradients_not_kept:
            traffic[kernel.id] += 2 * decided.output_bytes(kernel) * decided.tiles_of_output(kernel) / micro_batch
    return traffic


def _live_bytes(decided: DecidedDesign, number: int) -> float:
    """Return the bytes of a tile of each tensor that waits in DRAM during a configuration, for it or later ones."""
    batch, configs = decided.design.execution.batch, decided.decision.configs
    if decided.compatibility.other_tensors_ignored and batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return 0.0
    live = 0
    for edge in decided.design.edges:
        producer, consumer = configs[edge.source], configs[edge.target]
        if producer < number <= consumer or producer == number < consumer:
            live += decided.edge_bytes(edge)
    return float(live * max(1, batch.micro_batch))
