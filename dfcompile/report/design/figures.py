"""The report on a solved design, frozen: each figure with its unit, its meaning and the tables that show it."""

from functools import partial
from typing import Final, TypeAlias

from dfcompile.report.figure import figure, record
from dfcompile.report.figure import figure as described
from dfcompile.report.figures import AssumptionSummary, Report
from dfcompile.report.mapping_figures import BOUND_BY
from dfcompile.report.plain_values import Json, schema_of


@record()
class PlacedKernelSummary:
    """A kernel on the grid."""

    name: str = figure("as in the file")
    lanes: int = figure("that share its rows", unit="PCUs", least=1)
    stages: int = figure("that share its columns", unit="PCUs", least=1)
    cells: tuple[int, ...] = figure("of its PCUs, lane by lane")


@record()
class PlacedTensorSummary:
    """What PMUs hold."""

    role: str = figure(
        "`tensor`; `weights` of the reader; `added`, which the file adds to its SRAM",
        choices=("tensor", "weights", "added"),
    )
    writer: str = figure("kernel; empty for weights and what is added")
    reader: str = figure("kernel")
    cells: tuple[int, ...] = figure("of its PMUs")


@record()
class WiresSummary:
    """Wires between the PMUs of a tensor and the PCUs of a kernel."""

    tensor: int = figure("its number in `tensors`")
    kernel: int = figure("its number in `kernels`")
    direction: str = figure("`in`: PMUs feed PCUs; `out`: PCUs write to PMUs", choices=("in", "out"))
    pmu_cells: tuple[int, ...] = figure("one end of each wire")
    pcu_cells: tuple[int, ...] = figure("the other end of each wire, in the same order")


@record()
class LinkSummary:
    """What goes off the chip, or comes to it."""

    tensor: int | None = figure("its number in `tensors`; `null`: the results of the kernel, which it exchanges")
    kernel: int = figure("number in `kernels` of the one that reads or writes it")
    direction: str = figure("as the chip sees it: `in` or `out`", choices=("in", "out"))
    dimension: int | None = figure("of the network, from 0; `null`: DRAM")
    border: str = figure(
        "of the grid, with the router: `left`, `right`, `top` or `bottom`", choices=("left", "right", "top", "bottom")
    )
    cells: tuple[int, ...] = figure("that use it")


@record("placements")
class PlacementSummary:
    """One configuration on the grid."""

    configuration: int = figure("its number")
    columns: int = figure("of the grid", unit="cells", least=1)
    rows: int = figure("of the grid", unit="cells", least=1)
    walk: str = figure(
        "order in which cells are taken: `rowwise` or `diagonalwise`",
        heading="order",
        after="pmus",
        choices=("rowwise", "diagonalwise"),
    )
    pcus: int = figure("in use", unit="units", heading="PCUs")
    pmus: int = figure("in use", unit="units", heading="PMUs")
    kernels: tuple[PlacedKernelSummary, ...] = figure("on the chip, in topological order")
    tensors: tuple[PlacedTensorSummary, ...] = figure("in the SRAM of the chip")
    wires: tuple[WiresSummary, ...] = figure("between PMUs and PCUs")
    links: tuple[LinkSummary, ...] = figure("with DRAM and other chips")


FORMAT: Final = "dfcompile-design/1"

_part = partial(figure, unit="bytes", table="memory", cell=",.0f", hidden=0)


@record()
class DramParts:
    """What the memory of a chip is used for."""

    weights: float = _part("with what the file adds to them", heading="weights\nbytes")
    gradients: float = _part("of weights", heading="gradients\nbytes")
    optimizer_states: float = _part("of parameters", of="optimizer", heading="optimizer\nstates\nbytes")
    activations_in_flight: float = _part(
        "that wait for the backward pass", of="activations", heading="activations\nin\nflight\nbytes"
    )
    tables: float = _part("embeddings, a matrix or a vector", heading="tables\nbytes")
    waiting_tensors: float = _part("between configurations", heading="waiting\ntensors\nbytes")


@record("design")
class DesignSummary:
    """Figures of a design; times of a batch unless said, memory of one chip."""

    chips: int = figure("of the machine, all copies of the workload together", unit="chips", heading="chips", least=1)
    tensor_parallel: int = figure("that share each kernel", unit="chips", heading="TP", least=1)
    pipeline_parallel: int = figure("that follow one another", unit="stages", heading="PP", least=1)
    data_parallel: int = figure("that share the batch", unit="groups", heading="DP", least=1)
    sequence_parallel: int = figure("that share the sequence", unit="groups", heading="SP", hidden=1, least=1)
    micro_batch: int = figure("that go through the pipeline together", unit="inputs", heading="micro-\nbatch", least=1)
    tiles: int = figure("parts of the sequence that follow one another", unit="tiles", heading="tiles", least=1)
    time_s: float = figure("of a batch", of="batch_s", heading="batch\n{}s")
    step_s: float = figure(
        "of one input in one layer, or in the slowest stage of a graph of all layers", heading="layer\n{}s"
    )
    latency_s: float = figure("of one input through all layers")
    utilization: float = figure("floating-point operations / (peak rate × `time_s`)", heading="util.\n%", cell=".2%")
    flop: float = figure("of a batch, all copies")
    cost_usd: float = figure("price of the machine", heading="cost\nUSD", cell=",.0f")
    power_w: float = figure("power of the machine", heading="power\n{}W")
    energy_j: float = figure("`power_w * time_s`", heading="energy\n{}J")
    sram_capacity_bytes: float = figure(
        "of a chip; 0: unlimited", heading="of", table="memory", cell=",.0f", words=((0, "unlimited"),)
    )
    dram_bytes: float = figure(
        "of a chip, most that is in use at a time", heading="DRAM\nbytes", table="memory", cell=",.0f"
    )
    dram_capacity_bytes: float = figure(
        "of a chip; 0: unlimited", heading="of", table="memory", cell=",.0f", words=((0, "unlimited"),)
    )
    chip_flop_per_s: float = figure("peak of one chip", unit="FLOP/s")
    dram_bytes_per_s: float = figure("between a chip and its DRAM", unit="B/s")
    dram_parts_bytes: DramParts = figure("what `dram_bytes` is made of")
    dram_traffic_bytes: float = figure("of a batch, all chips")
    network_traffic_bytes: float = figure("of a batch, all chips")
    sharding_bytes: float = figure(
        "that the sharding moves between chips, per input and layer, before chips share them"
    )


@record()
class SearchSummary:
    """How a design was found."""

    optimal: bool = figure(
        "whether it is proved that no other choice of what the file leaves open is faster, with this sharding"
    )
    gap: float = figure("(`time_s` − `bound_time_s`) / `bound_time_s`")
    bound_time_s: float = figure("that no choice can fall below", of="bound_s")
    solver: str = figure("what found the configurations")
    solver_s: float = figure("wall time; the one field that differs between runs", decimals=3)
    points: int = figure("of degrees, micro-batch size and tiles that there are", unit="choices", least=1)
    fused_points: int = figure("of them that the lower bound did not rule out", unit="choices", least=1)


@record("configurations")
class StepSummary:
    """One configuration, per input and layer."""

    configuration: int = figure("its number, in order of execution; those without kernels are left out")
    stage: int = figure("of the pipeline")
    kernels: tuple[str, ...] = figure("names of those that are on the chip together", least=1)
    time_s: float = figure("of one input in one layer", heading="time\n{}s")
    compute_s: float = figure("its part in compute; the parts overlap as the file says", heading="compute\n{}s")
    memory_s: float = figure("its part in memory", heading="memory\n{}s")
    network_s: float = figure("its part in the network", heading="network\n{}s")
    bound_by: str = figure(
        "the largest of them: `compute`, `memory` or `network`", heading="bound by", choices=BOUND_BY
    )
    sram_bytes: float = figure("in use", heading="SRAM\nbytes", cell=",.0f")
    weight_tiles: int = figure(
        "in which its weights are loaded", unit="parts", heading="weight\ntiles", cell="d", least=1
    )


@record("kernels")
class KernelSummary:
    """One kernel and its share on one chip."""

    name: str = figure("as in the file")
    configuration: int = figure("that it is in", heading="config", cell="d")
    sharding: str = figure(
        "dimension that is split over chips: `O`, `M`, `K`, `N`, or `-` for none",
        heading="split",
        choices=("O", "M", "K", "N", "-"),
    )
    rows: int = figure("of a tile on one chip", unit="elements", heading="rows", least=1)
    k: int = figure("contracted, of a tile on one chip", unit="elements", heading="k", least=1)
    n: int = figure("columns of a tile on one chip", unit="elements", heading="n", least=1)
    exchange: str = figure(
        "collectives of the kernel and of what it hands on, with commas; empty if there are none",
        heading="exchange",
        words=(("", "-"),),
    )
    flop: float = figure("on one chip, of one micro-batch in one layer")
    dram_bytes: float = figure(
        "read from DRAM for it and written to DRAM, on one chip, of one micro-batch in one layer"
    )
    time_s: float = figure("of its configuration, whose kernels run together, from the first tile to the last")
    bound_by: str = figure("what bounds its configuration", choices=BOUND_BY)


@record()
class CorrectionSummary:
    """A figure that is another without one correction; see docs/dfmodel.md."""

    switch: str = figure("of `--compat`")
    text: str = figure("what is right")
    applied: bool = figure("whether `value` is the right one", of="is_applied")
    figure: str = described("what it changes, with its unit")
    value: float = described("as reported")
    other_value: float = described("with the switch turned")


@record()
class DesignReport:
    """The report on a solved design."""

    format: str = figure("name and version of this contract", choices=(FORMAT,), default=FORMAT, init=False)
    name: str = figure("of the file, without its suffix")
    figures: DesignSummary = figure("of the design")
    search: SearchSummary = figure("how it was found")
    configurations: tuple[StepSummary, ...] = figure("in their order", least=1)
    kernels: tuple[KernelSummary, ...] = figure("in the order of the file", least=1)
    placements: tuple[PlacementSummary, ...] = figure(
        "units on the grid of the chip, per configuration; empty if nothing is placed"
    )
    corrections: tuple[CorrectionSummary, ...] = figure("figures that a switch of `--compat` changes")
    assumptions: tuple[AssumptionSummary, ...] = figure("as above")
    warnings: tuple[str, ...] = figure("as above", default=())


AnyReport: TypeAlias = Report | DesignReport


def design_schema() -> dict[str, Json]:
    """Return the JSON Schema of the report."""
    return schema_of(DesignReport, FORMAT)
