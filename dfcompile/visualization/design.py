"""Pictures of a solved design: kernels and connections, one cluster per configuration, as Graphviz and SVG."""

from html import escape

from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.host.printable import json_text, printable

BOX_WIDTH, BOX_HEIGHT = 210, 26  # pixels
GAP_X, GAP_Y = 70, 12
MARGIN, HEAD = 14, 22
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


def _text(left: int, top: int, text: str, weight: str) -> str:
    style = f'font-family="sans-serif" font-size="12" font-weight="{weight}"'
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
