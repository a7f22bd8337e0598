"""Pictures of placed configurations: the grid with the kernels' PCUs and the tensors' PMUs, as SVG."""

from colorsys import hls_to_rgb
from html import escape
from typing import assert_never

from dfcompile.dfmodel_backend.placement.placed_design import PlacedConfiguration
from dfcompile.dfmodel_backend.placement.placement import Cell, PlacedTensor, Role
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.host.printable import printable

SIDE, GAP = 16, 2  # pixels of a cell
MARGIN, HEAD, LINE = 14, 24, 20
LETTER = 7  # pixels, about
TURN = 137  # degrees of hue from one kernel to the next


def placement_svg(design: Design, placed: PlacedConfiguration) -> str:
    """Return the grid of one configuration: PCUs as squares, PMUs as circles, in the colour of their kernel.

    A tensor has the colour of the kernel that reads it here, or else of the one that writes it.
    """
    grid = design.machine.pmu
    assert grid is not None
    names = [design.kernels[kernel.kernel].name for kernel in placed.units.kernels]
    fills: dict[Cell, tuple[int, str]] = {}
    for number, kernel in enumerate(placed.units.kernels):
        fills |= dict.fromkeys(kernel.cells, (number, names[number]))
    owner = {wires.tensor: wires.kernel for wires in placed.units.wires}  # wires to the reader come last
    for number, tensor in enumerate(placed.units.tensors):
        fills |= dict.fromkeys(tensor.cells, (owner[number], _what(design, tensor)))
    parts = [_cell(Cell(x, y), fills.get(Cell(x, y))) for y in range(grid.y) for x in range(grid.x)]
    left = MARGIN + grid.x * (SIDE + GAP) + MARGIN
    for number, name in enumerate(names):
        top = MARGIN + HEAD + number * LINE
        parts.append(f'<rect x="{left}" y="{top}" width="12" height="12" fill="{_colour(number)}" stroke="#456"/>')
        parts.append(_text(left + 18, top + 11, name))
    width = left + 18 + LETTER * max((len(name) for name in names), default=0) + MARGIN
    height = MARGIN + HEAD + max(grid.y * (SIDE + GAP), len(names) * LINE) + MARGIN
    title = (
        f"config {placed.configuration}: {grid.x} x {grid.y} cells, {grid.placement.value}; squares PCUs, circles PMUs"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, LETTER * len(title))}" height="{height}">'
    return "\n".join([head, _text(MARGIN, MARGIN + 10, title), *parts, "</svg>"]) + "\n"


def _what(design: Design, tensor: PlacedTensor) -> str:
    match tensor.role:
        case Role.WEIGHTS:
            return f"weights of {design.kernels[tensor.number].name}"
        case Role.ADDED:
            return f"added to {design.kernels[tensor.number].name}"
        case Role.TENSOR:
            names = {kernel.id: kernel.name for kernel in design.kernels}
            edge = design.edges[tensor.number]
            return f"{names[edge.source]} to {names[edge.target]}"
    assert_never(tensor.role)


def _cell(cell: Cell, used: tuple[int, str] | None) -> str:
    left, top = MARGIN + cell.x * (SIDE + GAP), MARGIN + HEAD + cell.y * (SIDE + GAP)
    fill = "#fff" if used is None else _colour(used[0])
    style = f'fill="{fill}" stroke="{"#ccd" if used is None else "#456"}"'
    title = "" if used is None else f"<title>{escape(printable(used[1]))} ({cell.x}, {cell.y})</title>"
    if cell.is_pcu:
        return f'<rect x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" {style}>{title}</rect>'
    half = SIDE // 2
    return f'<circle cx="{left + half}" cy="{top + half}" r="{half}" {style}>{title}</circle>'


def _colour(number: int) -> str:
    """Return a light colour as ``#rrggbb``: not every viewer of SVG knows others."""
    levels = hls_to_rgb(number * TURN % 360 / 360, 0.75, 0.6)
    return "#" + "".join(f"{round(255 * level):02x}" for level in levels)


def _text(left: int, top: int, text: str) -> str:
    return f'<text x="{left}" y="{top}" font-family="sans-serif" font-size="12">{escape(printable(text))}</text>'
