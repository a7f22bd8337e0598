"""Checks a mapping from first principles; shares no code with the evaluator or the solvers."""

from functools import partial
from itertools import accumulate

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.check import machines
from dfcompile.dfmodel_backend.check.requirements import combined_ns, longest_paths, require, require_close
from dfcompile.dfmodel_backend.evaluate.graphs import Configuration, Mapping
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Tensor, TensorKind, Use
from dfcompile.errors import VerificationError

_RELATIVE = 1e-9
_same = partial(require_close, relative=_RELATIVE)


def check_mapping(graph: DataflowGraph, system: System, mapping: Mapping, whole: DataflowGraph | None = None) -> None:
    """Check a mapping: every kernel once, edges forward, limits kept, every figure right.

    Args:
        graph: that is mapped; on several chips what one of them has of it.
        system: with the chips in use.
        mapping: as it will be reported.
        whole: the graph on all chips; None: there is one chip.

    Raises:
        VerificationError: naming the configuration or the kernel, found against expected.
    """
    require("chips", mapping.chips, 1 if whole is None else system.chips)
    place = _places(graph, mapping)
    made = [(tensor, use.kernel) for tensor in graph.tensors for use in tensor.uses if tensor.source]
    for tensor, reader in made:
        if place[tensor.source] > place[reader]:
            raise VerificationError(f"tensor {tensor.name!r}: made in a later configuration than it is read")
    levels = longest_paths(graph.index, [(tensor.source, reader) for tensor, reader in made])
    contents = [_Content(f"configuration {number}", one, levels) for number, one in enumerate(mapping.figures.configs)]
    _fill(contents, graph, place)
    for content in contents:
        _check_configuration(graph, system, mapping.options, content)
    _check_totals(graph if whole is None else whole, system, mapping)
    found, expected = mapping.figures.exchanges, graph.exchanges
    if found != expected:
        raise VerificationError(f"exchanges: found {len(found)} that are not the {len(expected)} of the graph")
    _same("network bytes", mapping.figures.network_bytes, sum(exchange.message_bytes for exchange in expected))
    _same("moved bytes", mapping.figures.moved_bytes, sum(exchange.moved_bytes for exchange in expected))


def _places(graph: DataflowGraph, mapping: Mapping) -> dict[str, int]:
    place: dict[str, int] = {}
    for number, config in enumerate(mapping.figures.configs):
        for name in config.kernels:
            if name in place:
                raise VerificationError(f"kernel {name!r}: found in two configurations against one")
            place[name] = number
    for kernel in graph.kernels:
        if kernel.name not in place:
            raise VerificationError(f"kernel {kernel.name!r}: found in no configuration")
    if len(place) != len(graph.kernels):
        raise VerificationError("configurations: found kernels that the graph does not have")
    most = mapping.options.max_configurations
    if most and len(mapping.figures.configs) > most:
        raise VerificationError(f"configurations: found {len(mapping.figures.configs)} against at most {most}")
    return place


class _Content:
    """What a configuration has: kernels and tensors that they touch, in the order of the graph, and bytes alive."""

    def __init__(self, where: str, config: Configuration, levels: dict[str, int]) -> None:
        self.where, self.config, self.levels = where, config, levels
        self.kernels: dict[str, Kernel] = {}
        self.tensors: list[Tensor] = []
        self.live_bytes = 0


def _fill(contents: list[_Content], graph: DataflowGraph, place: dict[str, int]) -> None:
    for kernel in graph.kernels:
        contents[place[kernel.name]].kernels[kernel.name] = kernel
    count = len(contents)
    changes = [0] * (count + 1)  # of the bytes alive, from one configuration to the next
    for tensor in graph.tensors:
        born = place[tensor.source] if tensor.source else -1
        used = {place[use.kernel] for use in tensor.uses}
        for number in sorted(used | ({born} if tensor.source else set())):
            contents[number].tensors.append(tensor)
        is_weight, last = tensor.kind is TensorKind.WEIGHT, max(used, default=-1)
        if is_weight or tensor.kind is TensorKind.OUTPUT:
            last = count
        if is_weight or born < last:
            changes[0 if is_weight else max(born, 0)] += tensor.size_bytes
            changes[min(last + 1, count)] -= tensor.size_bytes
    for content, live in zip(contents, accumulate(changes), strict=False):
        content.live_bytes = live


def _check_configuration(graph: DataflowGraph, system: System, options: MappingOptions, content: _Content) -> None:
    where, config, kernels = content.where, content.config, list(content.kernels.values())
    _same(f"{where}: compute", config.compute_ns, _compute_ns(kernels, system, options, config, where))
    reads, writes, held, resident = _bytes(content)
    _same(f"{where}: bytes read", config.dram_read_bytes, reads * config.weight_tiles + held)
    _same(f"{where}: bytes written", config.dram_write_bytes, writes)
    moved = reads * config.weight_tiles + held + writes
    _same(f"{where}: memory", config.memory_ns, moved / machines.dram_bytes_per_ns(system))
    _same(f"{where}: sram", config.sram_bytes, resident)
    if config.weight_tiles > 1 and (len(kernels) > 1 or config.weight_tiles > _rows(kernels[0])):
        raise VerificationError(f"{where}: weights in {config.weight_tiles} tiles, which its kernels do not allow")
    sram = machines.on_chip(system.accelerator.sram, system)
    if sram and resident > sram * (1 + _RELATIVE):
        raise VerificationError(f"{where}: found {resident} bytes of SRAM against {sram}")
    live, capacity = content.live_bytes, system.dram.capacity.value
    _same(f"{where}: live bytes", config.dram_live_bytes, live)
    if capacity and live > capacity:
        raise VerificationError(f"{where}: found {live} bytes of DRAM against {capacity}")
    exchanged = [one.time_ns for one in graph.exchanges if one.source in config.kernels]
    _same(f"{where}: network", config.network_ns, sum(exchanged))
    together = combined_ns(options.overlap, config.compute_ns, config.memory_ns, config.network_ns)
    _same(f"{where}: time", config.time_ns, together)


def _rows(kernel: Kernel) -> int:
    """Return into how many parts the weights of a kernel may be cut."""
    return kernel.outer * kernel.m * (1 if kernel.variant.is_gemm else kernel.n)


def _compute_ns(
    kernels: list[Kernel], system: System, options: MappingOptions, config: Configuration, where: str
) -> float:
    chip = system.accelerator
    if len(kernels) > chip.cores:
        raise VerificationError(f"{where}: found {len(kernels)} kernels against {chip.cores} cores")
    assumed = options.compute_utilization
    if assumed > 0:
        return sum(kernel.flop for kernel in kernels) / (assumed * machines.peak_flop_per_s(system)) * machines.PER_S
    if len(config.core_splits) != len(kernels):
        raise VerificationError(f"{where}: found {len(config.core_splits)} core splits against {len(kernels)} kernels")
    used = sum(split.lanes * split.stages for split in config.core_splits)
    if used > chip.cores:
        raise VerificationError(f"{where}: found {used} cores in use against {chip.cores}")
    slowest = 0
    for kernel, split in zip(kernels, config.core_splits, strict=True):
        lanes = split.lanes * chip.lanes_per_core
        stages = split.stages * chip.stages_per_core
        cycles = -(-kernel.outer * kernel.m * kernel.n // lanes)
        if kernel.variant.is_gemm:
            cycles = -(-kernel.outer * kernel.m // lanes) * -(-kernel.n // stages) * kernel.k
        slowest = max(slowest, cycles)
    return slowest / chip.frequency_ghz


def _bytes(content: _Content) -> tuple[int, int, int, int]:
    """Return (streamed in, streamed out, weights, SRAM) of a configuration, tensor by tensor."""
    config, kernels, levels = content.config, content.kernels, content.levels
    reads = writes = held = resident = 0
    for tensor in content.tensors:
        here = [use for use in tensor.uses if use.kernel in kernels]
        if tensor.kind is TensorKind.WEIGHT:
            if here:
                held += tensor.size_bytes
                resident += -(-tensor.size_bytes // config.weight_tiles)
            continue
        made_here = tensor.source in kernels
        if here and not made_here:
            reads += tensor.size_bytes
            resident += 2 * max(_tile(tensor, config.tiles, [_accepts(kernels[use.kernel], use)]) for use in here)
        if not made_here:
            continue
        maker = kernels[tensor.source]
        gives = maker.outer * maker.n * (1 if maker.variant.is_gemm else maker.m)
        resident += max(
            (
                (levels[use.kernel] - levels[tensor.source] + 1)
                * _tile(tensor, config.tiles, [_accepts(kernels[use.kernel], use), gives])
                for use in here
            ),
            default=0,
        )
        if tensor.kind is TensorKind.OUTPUT or len(here) < len(tensor.uses):
            writes += tensor.size_bytes
            resident += 2 * -(-tensor.size_bytes // (min(config.tiles, gives) * config.weight_tiles))
    return reads, writes, held, resident


def _tile(tensor: Tensor, tiles: int, limits: list[int]) -> int:
    return -(-tensor.size_bytes // min(tiles, *limits))


def _accepts(kernel: Kernel, use: Use) -> int:
    if not kernel.variant.is_gemm:
        return kernel.outer * kernel.m * kernel.n
    if kernel.variant.value == "gemm_input1_input2" and use.operand == 0:
        return kernel.outer
    return kernel.outer * kernel.n * kernel.k


def _check_totals(graph: DataflowGraph, system: System, mapping: Mapping) -> None:
    figures = mapping.figures
    time_s = sum(config.time_ns for config in figures.configs) / machines.PER_S
    _same("time", figures.time_s, time_s)
    one_chip_bytes = sum(c.dram_read_bytes + c.dram_write_bytes for c in figures.configs)
    _same("dram bytes", figures.dram_bytes, one_chip_bytes * mapping.chips)
    _same("flop", figures.flop, sum(kernel.flop for kernel in graph.kernels))
    used = system.one_chip if mapping.chips == 1 else system
    _same("cost", figures.cost_usd, machines.price_usd(used))
    _same("power", figures.power_w, machines.power_w(used))
    _same("energy", figures.energy_j, figures.power_w * time_s)
    if time_s:
        peak = machines.peak_flop_per_s(used) * mapping.chips
        _same("utilization", figures.utilization, figures.flop / (time_s * peak))
        _same("gap", mapping.gap, figures.time_s / mapping.bound_time_s - 1)
    if mapping.bound_time_s > figures.time_s * (1 + _RELATIVE):
        raise VerificationError(f"bound: found {mapping.bound_time_s} s against a time of {figures.time_s} s")
