"""What each configuration of a design takes per input and layer: bytes, exchanges and times [ko24].

What chips exchange is recomputed by tables of collectives, which share no formula with the evaluator.
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

Sent = tuple[DesignKernel, Collective, float]  # whose output, how, bytes of a tile
ONCE = Collective.ALL_REDUCE_PERIODIC


def network_ns(decided: DecidedDesign, inside: Kernels) -> float:
    """Return how long chips exchange in a configuration, or at least exchange: see `check.collectives.is_known`."""
    machine, batch = decided.design.machine, decided.design.execution.batch
    links, kind, everyone = machine.links, batch.kind, decided.groups.chips
    if kind is WorkloadKind.LLM:
        return _language_model_ns(decided, inside)
    if kind is WorkloadKind.HPL:
        across, down = _matrix_bytes(decided, inside)
        return max(down / links[0].gb_per_s, across / links[-1].gb_per_s)
    exchanged = _given(inside, Collective.ALL_TO_ALL)
    match kind:
        case WorkloadKind.FFT:
            exchanged /= everyone**2
        case WorkloadKind.DLRM:
            exchanged /= 1 if decided.compatibility.all_to_all_as_given else everyone
        case _:
            assert_never(kind)
    total = exchanged * collectives.exchange_ns_per_byte(machine.topology, links, decided.compatibility)
    gradients = _given(inside, ONCE)
    if kind is WorkloadKind.DLRM:
        gradients /= batch.global_batch / everyone
    return total + gradients * _everywhere(decided)


def network_bytes(decided: DecidedDesign, inside: Kernels) -> float:
    """Return the bytes that a chip exchanges in a configuration."""
    kind, batch = decided.design.execution.batch.kind, decided.design.execution.batch
    everyone = decided.groups.chips
    if kind is WorkloadKind.LLM:
        return _language_model_bytes(decided, inside)
    if everyone == 1 and not decided.compatibility.lone_chip_communicates:
        return 0.0
    if kind is WorkloadKind.HPL:
        return sum(_matrix_bytes(decided, inside))
    exchanged, gradients = _given(inside, Collective.ALL_TO_ALL), _given(inside, ONCE)
    if kind is WorkloadKind.FFT:
        return (exchanged + gradients) / everyone**2
    return exchanged + gradients / (batch.global_batch / everyone)


def _given(inside: Kernels, collective: Collective) -> float:
    return sum((kernel.collective_bytes for kernel in inside if kernel.collective is collective), 0.0)


def _matrix_bytes(decided: DecidedDesign, inside: Kernels) -> tuple[float, float]:
    """Return the bytes that a chip of a grid sends across its row and down its column."""
    rows, columns = decided.sides
    sending = [kernel for kernel in inside if kernel.collective is not Collective.NONE]
    across = sum(kernel.collective_bytes for kernel in sending)
    down = sum(kernel.collective_bytes for kernel in sending if kernel.collective_2 is Collective.POINT_TO_POINT)
    return across / rows if rows > 1 else 0.0, down / columns if columns > 1 else 0.0


def _group(decided: DecidedDesign, name: str) -> Link | None:
    """Return the links of a group of several chips."""
    link = decided.groups.links.get(name)
    return link if link is not None and link.chips > 1 else None


def _language_model_ns(decided: DecidedDesign, inside: Kernels) -> float:
    machine, compatibility = decided.design.machine, decided.compatibility
    tensor, data, sequence = (_group(decided, name) for name in ("TP", "DP", "SP"))
    tiles, sent = decided.tiles_of(inside), sent_by(decided, inside)
    factor = _factor(decided, compatibility.all_reduce_factor)
    within = between = along = 0.0
    if tensor is not None:
        around = collectives.once_around(tensor, tensor.chips) / tensor.gb_per_s
        by_share = compatibility.layouts_change_by_share
        within = tiles * (
            _total(sent, Collective.ALL_REDUCE) * _tensor_reduction(decided, tensor, factor)
            + _whole(decided, sent, Collective.ALL_GATHER) * around
            + _whole(decided, sent, Collective.ALL_TO_ALL) * collectives.exchange_in_group(tensor, by_share=by_share)
        )
        if len(machine.links) != 3 or not 0 < machine.domain_chips < tensor.chips:
            kinds = [kind for _, kind, _ in sent]
            passes = factor * kinds.count(Collective.ALL_REDUCE)
            if not compatibility.gathers_without_latency:
                passes += kinds.count(Collective.ALL_GATHER) + kinds.count(Collective.ALL_TO_ALL)
            within += passes * machine.link_latency_ns * collectives.hops(tensor)
    if data is not None:
        gradients = sum(size * decided.tiles_of_output(kernel) for kernel, kind, size in sent if kind is ONCE)
        between = gradients / decided.groups.micro_batches * _data_reduction(decided, data)
    if compatibility.network_is_sum:
        return within + between
    if sequence is not None:
        around = collectives.once_around(sequence, sequence.chips) / sequence.gb_per_s
        rounds = sum(_rounds(kernel.collective_2, factor) * decided.output_bytes(kernel) for kernel in inside)
        along = tiles * around * rounds
    return max(within, between, along)


def _language_model_bytes(decided: DecidedDesign, inside: Kernels) -> float:
    """Return the bytes of a language model: a gather brings each chip what all others have; gradients once a batch."""
    groups, compatibility, total = decided.groups, decided.compatibility, 0.0
    tiles, sent = decided.tiles_of(inside), sent_by(decided, inside)
    if groups.tensor > 1 or compatibility.lone_chip_communicates:
        changed = sum(_whole(decided, sent, kind) for kind in (Collective.ALL_GATHER, Collective.ALL_TO_ALL))
        total += tiles * (_total(sent, Collective.ALL_REDUCE) + changed)
    if groups.data > 1 or compatibility.lone_chip_communicates:
        total += sum(
            size * decided.tiles_of_output(kernel) / groups.micro_batches for kernel, kind, size in sent if kind is ONCE
        )
    if groups.sequence > 1 or compatibility.lone_chip_communicates:
        total += tiles * sum(decided.output_bytes(kernel) for kernel in inside if _rounds(kernel.collective_2, 1))
    return total


def sent_by(decided: DecidedDesign, inside: Kernels) -> list[Sent]:
    """Return what kernels of a language model exchange, and what changes its layout behind them."""
    word, is_split = decided.design.execution.word_bytes, decided.groups.tensor > 1
    found = []
    for kernel in inside:
        rows, _, columns = decided.extents(kernel)
        kinds = [needed for producer, needed in decided.conversions if producer == kernel.id]
        if kernel.collective is not Collective.NONE:
            kinds.append(kernel.collective)
        elif is_split and decided.split(kernel) is Dim.K:
            kinds.append(Collective.ALL_REDUCE)
        found += [(kernel, kind, float(rows * columns * word)) for kind in kinds]
        if is_split and decided.design.shards_kernels and not decided.compatibility.layouts_by_letter:
            count = statistics_of(kernel, decided.split(kernel), rows, columns)
            if count:
                found.append((kernel, Collective.ALL_REDUCE, float(count * word)))
    return found


def _total(sent: Sequence[Sent], collective: Collective) -> float:
    return sum((size for _, kind, size in sent if kind is collective), 0.0)


def _whole(decided: DecidedDesign, sent: Sequence[Sent], collective: Collective) -> float:
    """Return the bytes of whole tensors, of which those of split kernels lie in parts."""
    parts = 1 if decided.compatibility.layouts_change_by_share else decided.groups.tensor
    split = (Dim.OUTER, Dim.M, Dim.N)
    sizes = (
        size * (parts if decided.split(kernel) in split else 1) for kernel, kind, size in sent if kind is collective
    )
    return sum(sizes, 0.0)


def _factor(decided: DecidedDesign, fixed: int) -> int:
    """Return how often a reduction goes around: twice if scatter and gather follow one another."""
    return fixed or 1 + decided.design.execution.separate_reduce_scatter


def _rounds(collective: Collective, factor: int) -> int:
    """Return how often a collective of a sequence parallel group goes around."""
    return {Collective.ALL_REDUCE: factor, Collective.ALL_GATHER: 1}.get(collective, 0)


def _tensor_reduction(decided: DecidedDesign, tensor: Link, factor: int) -> float:
    links, domain = decided.design.machine.links, decided.design.machine.domain_chips
    if domain and len(links) == 3:
        far = Link(links[1].shape, tensor.chips, links[1].gb_per_s, "", 0.0)
        return _in_domains(decided, far, (factor, factor))
    return factor * collectives.once_around(tensor, tensor.chips) / tensor.gb_per_s


def _data_reduction(decided: DecidedDesign, data: Link) -> float:
    links, domain = decided.design.machine.links, decided.design.machine.domain_chips
    if domain and len(links) == 3:
        return _in_domains(decided, data, (_periodic(decided, links[0].shape), _periodic(decided, data.shape)))
    return _periodic(decided, data.shape) * collectives.once_around(data, data.chips) / data.gb_per_s


def _periodic(decided: DecidedDesign, shape: str) -> int:
    if shape == "fc" and decided.compatibility.periodic_factor_ignored_when_fully_connected:
        return 1
    return _factor(decided, decided.compatibility.periodic_factor)


def _in_domains(decided: DecidedDesign, far: Link, factors: tuple[int, int]) -> float:
    """Return the time per byte of a reduction, in each domain over the innermost links, then over ``far`` ones."""
    near, domain, count = decided.design.machine.links[0], decided.design.machine.domain_chips, far.chips
    if decided.compatibility.domain_ignores_factor_and_kind:
        near, far, factors = replace(near, shape="r"), replace(far, shape="r"), (1, 1)
    close = min(domain, count)
    time = factors[0] * collectives.once_around(near, close) / near.gb_per_s if close > 1 else 0.0
    if domain < count:
        time += factors[1] * collectives.between_domains(far, count, domain) / far.gb_per_s
    return time


def _everywhere(decided: DecidedDesign) -> float:
    """Return the time per byte of a reduction over all chips: each dimension has the share that the inner ones left."""
    if decided.compatibility.periodic_bandwidth_forgotten:
        return decided.compatibility.periodic_factor or 1
    time, share = 0.0, 1.0
    for link in decided.design.machine.links:
        if link.chips > 1 or decided.compatibility.lone_chip_communicates:
            time += share * _periodic(decided, link.shape) * collectives.once_around(link, link.chips) / link.gb_per_s
        share /= link.chips
    return time


class Step(Struct, frozen=True):
    """A configuration, per input and layer.

    Attributes:
        stage: of the pipeline.
        kernels: in the order of the file.
        tiles: that follow one another.
        runs: of all tiles, one per input of kernels that take several.
        traffic: bytes of DRAM of each kernel, by its id.
        live_bytes: of tensors that wait in DRAM meanwhile.
        sram_bytes: in use.
        network_bytes: that a chip exchanges.
        compute_ns: of its splits of cores.
        memory_ns: of its DRAM traffic.
        network_ns: of its exchanges.
        time_ns: of all of them, as often as it runs.
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
        """That it moves."""
        return sum(self.traffic.values())


def steps_of(decided: DecidedDesign, given: Sequence[StepFigures]) -> tuple[Step, ...]:
    """Return the configurations of a design.

    Args:
        decided: the design and what was decided of it.
        given: of each configuration the tiles of its weights and the time of its splits of cores, which are checked
            apart; and the exchanges of networks whose times nobody else knows.
    """
    return tuple(_step(decided, number, one) for number, one in enumerate(given))


def _step(decided: DecidedDesign, number: int, given: StepFigures) -> Step:
    design, kernels = decided.design, decided.configuration(number)
    tiles = decided.tiles_of(kernels)
    runs = max([1, *(kernel.num_input for kernel in kernels)])
    traffic = _traffic_of(decided, kernels, given.weight_tiles)
    memory_ns = sum(traffic.values()) / design.machine.dram_gb_per_s
    exchange_ns = given.network_ns
    if kernels and collectives.is_known(design.machine.topology, design.machine.links):
        exchange_ns = network_ns(decided, kernels)
    times = [
        time_ns if kind in design.execution.counted else 0.0
        for kind, time_ns in zip("CMN", (given.compute_ns, memory_ns, exchange_ns), strict=True)
    ]
    return Step(
        stage=decided.decision.stages[number] if decided.decision.stages else 0,
        kernels=kernels,
        tiles=tiles,
        runs=runs,
        traffic=traffic,
        live_bytes=_live_bytes(decided, number) * tiles if kernels else 0.0,
        sram_bytes=sram_of(decided, kernels, given.weight_tiles),
        network_bytes=network_bytes(decided, kernels),
        compute_ns=given.compute_ns,
        memory_ns=memory_ns,
        network_ns=exchange_ns,
        time_ns=runs * combined_ns(design.execution.overlap, *times),
    )


def _edges_at(decided: DecidedDesign, inside: Kernels) -> Iterator[tuple[DesignEdge, bool, bool]]:
    """Yield each connection at a configuration, and whether it starts and ends inside."""
    ids = {kernel.id for kernel in inside}
    for edge in decided.design.edges:
        if edge.source in ids or edge.target in ids:
            yield edge, edge.source in ids, edge.target in ids


def sram_of(decided: DecidedDesign, inside: Kernels, weight_tiles: int) -> float:
    """Return the bytes of SRAM of a configuration: two tiles of what crosses its border, what is in flight, weights."""
    edges = decided.design.edges
    weighted = [kernel.id for kernel in decided.design.kernels if kernel.has_weight]
    sram = 0.0
    for edge, starts, ends in _edges_at(decided, inside):
        other = edge
        if decided.compatibility.sram_of_other_edges and edge.source in weighted:  # with the number of its weight
            rank = weighted.index(edge.source)
            other = edges[rank] if rank < len(edges) else edge
        size = decided.edge_bytes(other)
        if starts != ends:
            sram += 2 * size / (weight_tiles if starts else 1)
        else:
            sram += (decided.levels[other.target] - decided.levels[other.source] + 1) * size
    for kernel in inside:
        sram += (0 if kernel.skip_weight else decided.weight_bytes(kernel)) / weight_tiles + kernel.sram_extra_bytes
    return sram


def _traffic_of(decided: DecidedDesign, inside: Kernels, weight_tiles: int) -> dict[int, float]:
    """Return the bytes that each kernel of a configuration reads from DRAM and writes to it, by its id."""
    flaws, micro_batch = decided.compatibility, max(1, decided.design.execution.batch.micro_batch)
    tiles = decided.tiles_of(inside)
    parts = 1 if flaws.streams_read_once else weight_tiles  # how often what crosses the border is moved per tile
    if decided.design.machine.pmu is not None and flaws.kernels_multiply_traffic:
        parts += len(inside) - 1
    traffic = {kernel.id: kernel.memory_bytes for kernel in inside}
    for edge, starts, ends in _edges_at(decided, inside):
        if starts != ends:
            traffic[edge.source if starts else edge.target] += tiles * parts * decided.edge_bytes(edge)
    for kernel in inside:
        if not (kernel.memory_bytes or kernel.skip_weight or flaws.weights_not_read):
            read = decided.weight_bytes(kernel) * decided.tiles_of_weight(kernel)
            traffic[kernel.id] += read / max(1, kernel.num_input) / micro_batch
        if kernel.collective is ONCE and not flaws.gradients_not_kept:
            traffic[kernel.id] += 2 * decided.output_bytes(kernel) * decided.tiles_of_output(kernel) / micro_batch
    return traffic


def _live_bytes(decided: DecidedDesign, number: int) -> float:
    """Return the bytes of a tile of all tensors that a configuration finds in DRAM, or leaves there for later ones."""
    batch, configs = decided.design.execution.batch, decided.decision.configs
    if decided.compatibility.other_tensors_ignored and batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return 0.0
    live = 0
    for edge in decided.design.edges:
        made, read = configs[edge.source], configs[edge.target]
        if made < number <= read or made == number < read:
            live += decided.edge_bytes(edge)
    return float(live * max(1, batch.micro_batch))
