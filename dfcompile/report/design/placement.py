"""The placement of one configuration in the report on a design; a cell is the number ``y * columns + x``."""

from dfcompile.report.figure import figure, record


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
