"""Every kind of layer of a step, mapped: fused into configurations, split over chips, against what must move."""

from collections.abc import Mapping as Named

from msgspec import Struct

from dfcompile.dfmodel_backend import ChipCounts, DataflowGraph, Mapping, System, TensorKind
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE
from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted
from dfcompile.language_models.formats import Precision
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.mapping.chip import find_system
from dfcompile.language_models.mapping.layer_graph import ends_graph, layer_graph
from dfcompile.language_models.model import Model
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.kernel_time import roofline
from dfcompile.language_models.times.step_time import timed_step


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


def mapped_step(
    asked: str,
    model: Model,
    batch: Batch,
    device: Device,
    precision: Precision,
    choices: StepChoices,
    chips: int,
) -> MappedStep:
    """Map one layer of each kind and the head.

    Args:
        asked: the system, as `find_device`.
        model: that is run.
        batch: of all chips.
        device: that was found.
        precision: formats.
        choices: how the step is counted.
        chips: at hand.

    Raises:
        UserError: the system has fewer chips or lacks a rate, or `layer_graph`.
    """
    kernels = step_of(model, batch, precision, choices).kernels
    system = find_system(asked, device, [kernel.rate for kernel in kernels if kernel.macs])
    graphs = {
        kind.name: (kind.count, layer_graph(kind.name, kind.layer, model.hidden, batch, precision, choices))
        for kind in model.kinds
    }
    if batch.head_rows:
        graphs["head"] = (1, ends_graph(model, batch, precision))
    alone = {part.part: part.exec_s for part in timed_step(kernels, device, roofline).parts}
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
