"""The report on a solved design, frozen: each figure with its unit, its meaning and the tables that show it."""

from functools import partial
from typing import Final

from dfcompile.report.figure import figure, record
from dfcompile.report.figure import figure as described
from dfcompile.report.figures import AssumptionSummary
from dfcompile.report.json_schema import schema_of
from dfcompile.report.mapping_figures import BOUND_BY
from dfcompile.report.plain_values import Json


@record
class PlacedKernelSummary:
    """A kernel on the grid."""

    name: str = figure(meaning="as in the file")
    lanes: int = figure(unit="PCUs", meaning="that share its rows", least=1)
    stages: int = figure(unit="PCUs", meaning="that share its columns", least=1)
    cells: tuple[int, ...] = figure(meaning="of its PCUs, lane by lane")


@record
class PlacedTensorSummary:
    """What PMUs hold."""

    role: str = figure(
        meaning="`tensor`; `weights` of the reader; `added`, which the file adds to its SRAM",
        choices=("tensor", "weights", "added"),
    )
    writer: str = figure(meaning="kernel; empty for weights and what is added")
    reader: str = figure(meaning="kernel")
    cells: tuple[int, ...] = figure(meaning="of its PMUs")


@record
class WiresSummary:
    """Wires between the PMUs of a tensor and the PCUs of a kernel."""

    tensor: int = figure(meaning="its number in `tensors`")
    kernel: int = figure(meaning="its number in `kernels`")
    direction: str = figure(
        meaning="`in`: PMUs feed PCUs; `out`: PCUs write to PMUs",
        choices=("in", "out"),
    )
    pmu_cells: tuple[int, ...] = figure(meaning="one end of each wire")
    pcu_cells: tuple[int, ...] = figure(meaning="the other end of each wire, in the same order")


@record
class LinkSummary:
    """What goes off the chip, or comes to it."""

    tensor: int | None = figure(
        meaning="its number in `tensors`; `null`: the results of the kernel, which it exchanges"
    )
    kernel: int = figure(meaning="number in `kernels` of the one that reads or writes it")
    direction: str = figure(meaning="as the chip sees it: `in` or `out`", choices=("in", "out"))
    dimension: int | None = figure(meaning="of the network, from 0; `null`: DRAM")
    border: str = figure(
        meaning="of the grid, with the router: `left`, `right`, `top` or `bottom`",
        choices=("left", "right", "top", "bottom"),
    )
    cells: tuple[int, ...] = figure(meaning="that use it")


@record
class PlacementSummary:
    """One configuration on the grid."""

    configuration: int = figure(meaning="its number")
    columns: int = figure(unit="cells", meaning="of the grid", least=1)
    rows: int = figure(unit="cells", meaning="of the grid", least=1)
    walk: str = figure(
        meaning="order in which cells are taken: `rowwise` or `diagonalwise`",
        heading="order",
        table="placements",
        after="pmus",
        choices=("rowwise", "diagonalwise"),
    )
    pcus: int = figure(unit="units", meaning="in use", heading="PCUs", table="placements")
    pmus: int = figure(unit="units", meaning="in use", heading="PMUs", table="placements")
    kernels: tuple[PlacedKernelSummary, ...] = figure(meaning="on the chip, in topological order")
    tensors: tuple[PlacedTensorSummary, ...] = figure(meaning="in the SRAM of the chip")
    wires: tuple[WiresSummary, ...] = figure(meaning="between PMUs and PCUs")
    links: tuple[LinkSummary, ...] = figure(meaning="with DRAM and other chips")


FORMAT: Final = "dfcompile-design/1"

_part_of_memory = partial(figure, unit="bytes", table="memory", cell=",.0f", hidden=0)


@record
class DramParts:
    """What the memory of a chip is used for."""

    weights: float = _part_of_memory(meaning="with what the file adds to them", heading="weights\nbytes")
    gradients: float = _part_of_memory(meaning="of weights", heading="gradients\nbytes")
    optimizer_states: float = _part_of_memory(
        of="optimizer", meaning="of parameters", heading="optimizer\nstates\nbytes"
    )
    activations_in_flight: float = _part_of_memory(
        of="activations", meaning="that wait for the backward pass", heading="activations\nin\nflight\nbytes"
    )
    tables: float = _part_of_memory(meaning="embeddings, a matrix or a vector", heading="tables\nbytes")
    waiting_tensors: float = _part_of_memory(meaning="between configurations", heading="waiting\ntensors\nbytes")


@record
class DesignSummary:
    """Figures of a design; times of a batch unless said, memory of one chip."""

    chips: int = figure(
        unit="chips",
        meaning="of the machine, all copies of the workload together",
        heading="chips",
        table="design",
        least=1,
    )
    tensor_parallel: int = figure(unit="chips", meaning="that share each kernel", heading="TP", table="design", least=1)
    pipeline_parallel: int = figure(
        unit="stages", meaning="that follow one another", heading="PP", table="design", least=1
    )
    data_parallel: int = figure(unit="groups", meaning="that share the batch", heading="DP", table="design", least=1)
    sequence_parallel: int = figure(
        unit="groups", meaning="that share the sequence", heading="SP", table="design", hidden=1, least=1
    )
    micro_batch: int = figure(
        unit="inputs", meaning="that go through the pipeline together", heading="micro-\nbatch", table="design", least=1
    )
    tiles: int = figure(
        unit="tiles", meaning="parts of the sequence that follow one another", heading="tiles", table="design", least=1
    )
    time_s: float = figure(unit="s", meaning="of a batch", of="batch_s", heading="batch\n{}s", table="design")
    step_s: float = figure(
        unit="s",
        meaning="of one input in one layer, or in the slowest stage of a graph of all layers",
        heading="layer\n{}s",
        table="design",
    )
    latency_s: float = figure(unit="s", meaning="of one input through all layers")
    utilization: float = figure(
        meaning="floating-point operations / (peak rate × `time_s`)", heading="util.\n%", table="design", cell=".2%"
    )
    flop: float = figure(unit="FLOP", meaning="of a batch, all copies")
    cost_usd: float = figure(
        unit="USD", meaning="price of the machine", heading="cost\nUSD", table="design", cell=",.0f"
    )
    power_w: float = figure(unit="W", meaning="power of the machine", heading="power\n{}W", table="design")
    energy_j: float = figure(unit="J", meaning="`power_w * time_s`", heading="energy\n{}J", table="design")
    sram_capacity_bytes: float = figure(
        unit="bytes",
        meaning="of a chip; 0: unlimited",
        heading="of",
        table="memory",
        cell=",.0f",
        words=((0, "unlimited"),),
    )
    dram_bytes: float = figure(
        unit="bytes",
        meaning="of a chip, most that is in use at a time",
        heading="DRAM\nbytes",
        table="memory",
        cell=",.0f",
    )
    dram_capacity_bytes: float = figure(
        unit="bytes",
        meaning="of a chip; 0: unlimited",
        heading="of",
        table="memory",
        cell=",.0f",
        words=((0, "unlimited"),),
    )
    chip_flop_per_s: float = figure(unit="FLOP/s", meaning="peak of one chip")
    dram_bytes_per_s: float = figure(unit="B/s", meaning="between a chip and its DRAM")
    dram_parts_bytes: DramParts = figure(unit="bytes", meaning="what `dram_bytes` is made of")
    dram_traffic_bytes: float = figure(unit="bytes", meaning="of a batch, all chips")
    network_traffic_bytes: float = figure(unit="bytes", meaning="of a batch, all chips")
    sharding_bytes: float = figure(
        unit="bytes", meaning="that the sharding moves between chips, per input and layer, before chips share them"
    )


@record
class SearchSummary:
    """How a design was found."""

    optimal: bool = figure(
        meaning="whether it is proved that no other choice of what the file leaves open is faster, with this sharding"
    )
    gap: float = figure(meaning="(`time_s` − `bound_time_s`) / `bound_time_s`")
    bound_time_s: float = figure(unit="s", meaning="that no choice can fall below", of="bound_s")
    solver: str = figure(meaning="what found the configurations")
    solver_s: float = figure(unit="s", meaning="wall time; the one field that differs between runs", decimals=3)
    points: int = figure(unit="choices", meaning="of degrees, micro-batch size and tiles that there are", least=1)
    fused_points: int = figure(unit="choices", meaning="of them that the lower bound did not rule out", least=1)


@record
class StepSummary:
    """One configuration, per input and layer."""

    configuration: int = figure(meaning="its number, in order of execution; those without kernels are left out")
    stage: int = figure(meaning="of the pipeline")
    kernels: tuple[str, ...] = figure(meaning="names of those that are on the chip together", least=1)
    time_s: float = figure(unit="s", meaning="of one input in one layer", heading="time\n{}s", table="configurations")
    compute_s: float = figure(
        unit="s",
        meaning="its part in compute; the parts overlap as the file says",
        heading="compute\n{}s",
        table="configurations",
    )
    memory_s: float = figure(unit="s", meaning="its part in memory", heading="memory\n{}s", table="configurations")
    network_s: float = figure(
        unit="s", meaning="its part in the network", heading="network\n{}s", table="configurations"
    )
    bound_by: str = figure(
        meaning="the largest of them: `compute`, `memory` or `network`",
        heading="bound by",
        table="configurations",
        choices=BOUND_BY,
    )
    sram_bytes: float = figure(
        unit="bytes", meaning="in use", heading="SRAM\nbytes", table="configurations", cell=",.0f"
    )
    weight_tiles: int = figure(
        unit="parts",
        meaning="in which its weights are loaded",
        heading="weight\ntiles",
        table="configurations",
        cell="d",
        least=1,
    )


@record
class KernelSummary:
    """One kernel and its share on one chip."""

    name: str = figure(meaning="as in the file")
    configuration: int = figure(meaning="that it is in", heading="config", table="kernels", cell="d")
    sharding: str = figure(
        meaning="dimension that is split over chips: `O`, `M`, `K`, `N`, or `-` for none",
        heading="split",
        table="kernels",
        choices=("O", "M", "K", "N", "-"),
    )
    rows: int = figure(unit="elements", meaning="of a tile on one chip", heading="rows", table="kernels", least=1)
    k: int = figure(unit="elements", meaning="contracted, of a tile on one chip", heading="k", table="kernels", least=1)
    n: int = figure(unit="elements", meaning="columns of a tile on one chip", heading="n", table="kernels", least=1)
    exchange: str = figure(
        meaning="collectives of the kernel and of what it hands on, with commas; empty if there are none",
        heading="exchange",
        table="kernels",
        words=(("", "-"),),
    )
    flop: float = figure(unit="FLOP", meaning="on one chip, of one micro-batch in one layer")
    dram_bytes: float = figure(
        unit="bytes",
        meaning="read from DRAM for it and written to DRAM, on one chip, of one micro-batch in one layer",
    )
    time_s: float = figure(
        unit="s", meaning="of its configuration, whose kernels run together, from the first tile to the last"
    )
    bound_by: str = figure(meaning="what bounds its configuration", choices=BOUND_BY)


@record
class CorrectionSummary:
    """A figure that is another without one correction; see docs/dfmodel.md."""

    switch: str = figure(meaning="of `--compat`")
    text: str = figure(meaning="what is right")
    applied: bool = figure(meaning="whether `value` is the right one", of="is_applied")
    figure: str = described(meaning="what it changes, with its unit")
    value: float = described(meaning="as reported")
    other_value: float = described(meaning="with the switch turned")


@record
class DesignReport:
    """The report on a solved design."""

    format: str = figure(meaning="name and version of this contract", choices=(FORMAT,), default=FORMAT, init=False)
    name: str = figure(meaning="of the file, without its suffix")
    figures: DesignSummary = figure(meaning="of the design")
    search: SearchSummary = figure(meaning="how it was found")
    configurations: tuple[StepSummary, ...] = figure(meaning="in their order", least=1)
    kernels: tuple[KernelSummary, ...] = figure(meaning="in the order of the file", least=1)
    placements: tuple[PlacementSummary, ...] = figure(
        meaning="units on the grid of the chip, per configuration; empty if nothing is placed"
    )
    corrections: tuple[CorrectionSummary, ...] = figure(meaning="figures that a switch of `--compat` changes")
    assumptions: tuple[AssumptionSummary, ...] = figure(meaning="as above")
    warnings: tuple[str, ...] = figure(meaning="as above", default=())


def design_schema() -> dict[str, Json]:
    """Return the JSON Schema of the report."""
    return schema_of(DesignReport, FORMAT)
