"""Every kind of layer of a step, mapped: fused into configurations, split over chips, against what must move."""

import math
from collections.abc import Mapping as Named
from collections.abc import Sequence

from msgspec import Struct

from dfcompile.dfmodel_backend import Amount, Assumption, ChipCounts, DataflowGraph, Mapping, TensorKind, load_system
from dfcompile.dfmodel_backend.machine.system import Accelerator, Dimension, Dram, Network, System
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE
from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.machines.finding import is_device
from dfcompile.language_models.mapping.layer_graph import ends_graph, layer_graph
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.step_time import timed_step

_HERE = "dfcompile llm --map"


def find_system(asked: str, device: Device, forms: Sequence[str]) -> System:
    """Return the system of a name or file: its own, or made of a spreadsheet's device.

    Args:
        asked: as `find_device`.
        device: that was found.
        forms: number formats of products; the slowest of them gives the rate.

    Raises:
        UserError: the device has no rate of a format, or its chips lie in a network that is not known.
    """
    return system_of(device, forms) if is_device(asked) else load_system(asked)


def system_of(device: Device, forms: Sequence[str]) -> System:
    """Return the system of a device.

    Where it does not say of which arrays its cores are, they have a power of two of multiply-adders, as near as
    possible to what the rate asks for, and the frequency is such that the rate is met.
    """
    form = min(dict.fromkeys(forms), key=device.rate)
    kinds = "_".join(link.kind for link in device.links) or "none"
    dimensions = tuple(Dimension(link.chips, link.bytes_per_s * 1e-9, 0.0) for link in device.links)
    rate = device.rate(form)
    rows, _, columns = device.granule
    per_core = rate / device.cores / (device.frequency_hz or 1e9)
    if rows * columns == 1:
        bits = max(0, round(math.log2(per_core)))
        rows, columns = 1 << bits // 2, 1 << (bits - bits // 2)
    frequency = rate / (device.cores * rows * columns)
    held = device.cache_bytes * device.instances(device.levels[0]) if device.levels else 0
    return System(
        name=device.name,
        chips=device.chips,
        accelerator=Accelerator(
            device.cores, rows, columns, frequency * 1e-9, Amount(held), Amount(device.usd), Amount(device.tdp_w)
        ),
        dram=Dram(Amount(device.bytes_per_s * 1e-9), Amount(device.capacity_bytes), 0.0, 0.0),
        network=Network(kinds, dimensions, 0.0, 0.0, 0.0, device.link_latency_s * 1e9),
        sources=(
            Assumption("arrays", f"{rows} x {columns} per core at {frequency * 1e-9:.4g} GHz", _HERE),
            Assumption("rate", f"of {form}, the slowest of its formats", _HERE),
        ),
    )


class MappedPart(Struct, frozen=True):
    """A layer of a kind, or the head, on as many chips as are fastest.

    Attributes:
        part: which.
        count: layers of the kind.
        graph: kernels and tensors of one.
        mapping: of one; none if there is no mapping.
        reason: why there is none.
        least_bytes: inputs, weights and results, once each: no schedule on one chip moves less.
        roofline_s: of its kernels one after the other on one chip, every operand once.
    """

    part: str
    count: int
    graph: DataflowGraph
    mapping: Mapping | None
    reason: str
    least_bytes: int
    roofline_s: float

    @property
    def sharding(self) -> Named[str, tuple[str, ...]]:
        """Loops of each kernel that are split over chips, along each dimension of the network; none if it is whole."""
        found = {} if self.mapping is None else dict(self.mapping.sharding)
        loops = {kernel.name: kernel.loops for kernel in self.graph.kernels}
        return {
            name: tuple(loops[name][number].name if number != WHOLE else "" for number in choice)
            for name, choice in found.items()
        }


class MappedStep(Struct, frozen=True):
    """All parts of a step that the back end maps, on one system."""

    batch: Batch
    system: System
    parts: tuple[MappedPart, ...]

    @property
    def time_s(self) -> float | None:
        """Of all layers and the head one after the other; none if one has no mapping."""
        times = [part.count * part.mapping.figures.time_s for part in self.parts if part.mapping is not None]
        return sum(times) if len(times) == len(self.parts) else None


def mapped_step(asked: str, case: Case, chips: int) -> MappedStep:
    """Map one layer of each kind and the head.

    Args:
        asked: the system, as `find_device`.
        case: a step of a model on the device that was found.
        chips: at hand.

    Raises:
        UserError: the system has fewer chips or lacks a rate, or `layer_graph`.
    """
    model, batch, precision, choices = case.model, case.batch, case.precision, case.choices
    kernels = step_of(model, batch, precision, choices).kernels
    system = find_system(asked, case.device, [kernel.rate for kernel in kernels if kernel.macs])
    how = model.hidden, batch, precision, choices
    graphs = {kind.name: (kind.count, layer_graph(kind.name, kind.layer, *how)) for kind in model.kinds}
    if batch.head_rows:
        graphs["head"] = (1, ends_graph(model, batch, precision))
    alone = {part.part: part.exec_s for part in timed_step(kernels, case.device, case.timer).parts}
    parts = []
    for name, (count, graph) in counted(tuple(graphs.items())):
        try:
            mapping, reason = ChipCounts(graph, system).fastest(chips), ""
        except InfeasibleError as error:
            mapping, reason = None, str(error)
        parts.append(MappedPart(name, count, graph, mapping, reason, least_bytes(graph), alone[name]))
    return MappedStep(batch, system, tuple(parts))


def least_bytes(graph: DataflowGraph) -> int:
    """Bytes of inputs, weights and results, once each."""
    return sum(tensor.size_bytes for tensor in graph.tensors if tensor.kind is not TensorKind.INTERMEDIATE)
