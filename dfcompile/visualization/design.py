"""Pictures of a solved design: kernels and connections, one cluster per configuration, as Graphviz and SVG.

And of placed configurations: the grid with the kernels' PCUs and the tensors' PMUs, as SVG.
"""

from colorsys import hls_to_rgb
from html import escape
from typing import assert_never

from dfcompile.dfmodel_backend.placement import Cell, PlacedConfiguration, PlacedTensor, Role
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.host.printable import json_text, printable

MARGIN = 14  # pixels
BOX_WIDTH, BOX_HEIGHT = 210, 26
GAP_X, GAP_Y = 70, 12
HEAD = 22
NAMED = 28  # characters of a name in a box


def to_dot(solution: DesignSolution) -> str:
    """Return the graph in Graphviz' language."""
    lines = ["digraph design {", "  rankdir=LR;", '  node [shape=box, fontname="Helvetica"];']
    for number, ids in _clusters(solution).items():
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={json_text(_title(solution, number))};")
        lines.extend(f"    k{kernel} [label={json_text(_label(solution, kernel))}];" for kernel in ids)
        lines.append("  }")
    lines.extend(f"  k{edge.source} -> k{edge.target};" for edge in solution.design.edges)
    return "\n".join([*lines, "}"]) + "\n"


def to_svg(solution: DesignSolution) -> str:
    """Return the graph as a drawing: a column per configuration in order of execution, kernels from top to bottom."""
    place: dict[int, tuple[int, int]] = {}
    parts = []
    tallest = 0
    for column, (number, ids) in enumerate(_clusters(solution).items()):
        left = MARGIN + column * (BOX_WIDTH + GAP_X)
        height = HEAD + len(ids) * (BOX_HEIGHT + GAP_Y) + GAP_Y
        tallest = max(tallest, height)
        parts.append(_rectangle(left - 8, MARGIN, BOX_WIDTH + 16, height, "#eef3f8", "#8aa"))
        parts.append(_text(left, MARGIN + 16, _title(solution, number), "bold"))
        for row, kernel in enumerate(ids):
            top = MARGIN + HEAD + GAP_Y // 2 + row * (BOX_HEIGHT + GAP_Y)
            place[kernel] = (left, top)
            parts.append(_rectangle(left, top, BOX_WIDTH, BOX_HEIGHT, "#fff", "#456"))
            parts.append(_text(left + 6, top + 17, _label(solution, kernel), "normal"))
    edges = [_edge(place[edge.source], place[edge.target]) for edge in solution.design.edges]
    width = 2 * MARGIN + len(_clusters(solution)) * (BOX_WIDTH + GAP_X)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{tallest + 2 * MARGIN}">'
    return "\n".join([head, *parts, *edges, "</svg>"]) + "\n"


def _clusters(solution: DesignSolution) -> dict[int, list[int]]:
    """Return kernel ids by configuration, both in order."""
    found: dict[int, list[int]] = {number: [] for number in sorted(set(solution.decision.configs.values()))}
    for kernel in solution.design.kernels:
        found[solution.decision.configs[kernel.id]].append(kernel.id)
    return found


def _title(solution: DesignSolution, number: int) -> str:
    step = solution.figures.steps[number]
    stage = f"stage {step.stage}, " if solution.decision.stages else ""
    return f"{stage}config {number}: {step.time_ns / 1e3:,.1f} µs, {step.bound_by}"


def _label(solution: DesignSolution, kernel: int) -> str:
    name = next(one.name for one in solution.design.kernels if one.id == kernel)
    split = solution.decision.sharding.get(kernel, Dim.NONE)
    short = name if len(name) <= NAMED else f"{name[: NAMED - 1]}…"
    return short if split is Dim.NONE else f"{short} [{split.value}]"


def _rectangle(left: int, top: int, width: int, height: int, fill: str, stroke: str) -> str:
    return f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="{stroke}"/>'


def _text(left: int, top: int, text: str, weight: str = "") -> str:
    style = 'font-family="sans-serif" font-size="12"' + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{left}" y="{top}" {style}>{escape(printable(text))}</text>'


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Draw a curve: to the next column from right to left side, within a column along the right side."""
    x0, y0 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    x1, y1 = end[0], end[1] + BOX_HEIGHT // 2
    bend = GAP_X // 2
    path = f"M{x0},{y0} C{x0 + bend},{y0} {x1 - bend},{y1} {x1},{y1}"
    if x1 < x0:
        x1 = end[0] + BOX_WIDTH
        path = f"M{x0},{y0} C{x0 + bend},{y0} {x1 + bend},{y1} {x1},{y1}"
    return f'<path d="{path}" fill="none" stroke="#667"/>'


SIDE, GAP = 16, 2  # pixels of a cell
GRID_HEAD, LINE = 24, 20
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
        top = MARGIN + GRID_HEAD + number * LINE
        parts.append(f'<rect x="{left}" y="{top}" width="12" height="12" fill="{_colour(number)}" stroke="#456"/>')
        parts.append(_text(left + 18, top + 11, name))
    width = left + 18 + LETTER * max((len(name) for name in names), default=0) + MARGIN
    height = MARGIN + GRID_HEAD + max(grid.y * (SIDE + GAP), len(names) * LINE) + MARGIN
    cells = f"{grid.x} x {grid.y} cells, {grid.placement.value}"
    title = f"config {placed.configuration}: {cells}; squares PCUs, circles PMUs"
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
    left, top = MARGIN + cell.x * (SIDE + GAP), MARGIN + GRID_HEAD + cell.y * (SIDE + GAP)
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
