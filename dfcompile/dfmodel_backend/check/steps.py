"""What each configuration of a design takes per input and layer: bytes, and times joined as the file says [ko24]."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from dfcompile.dfmodel_backend.check.collectives import is_known
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Kernels
from dfcompile.dfmodel_backend.check.network import ONCE, network_bytes, network_ns
from dfcompile.dfmodel_backend.check.requirements import joined
from dfcompile.dfmodel_backend.evaluate.designs import StepFigures
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel, WorkloadKind


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
    design, kernels = decided.design, decided.inside(number)
    tiles = decided.tiles_of(kernels)
    runs = max([1, *(kernel.num_input for kernel in kernels)])
    traffic = _traffic_of(decided, kernels, given.weight_tiles)
    memory_ns = sum(traffic.values()) / design.machine.dram_gb_per_s
    exchange_ns = given.network_ns
    if kernels and is_known(design.machine.topology, design.machine.links):
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
        time_ns=runs * joined(design.execution.overlap, *times),
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
        held = 0 if kernel.skip_weight else decided.weight_bytes(kernel)
        sram += held / weight_tiles + kernel.sram_extra_bytes
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
