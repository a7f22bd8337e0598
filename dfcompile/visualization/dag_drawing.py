"""A drawing of a canonical DAG as an SVG picture: a shape per family, an arrow per pair of families.

Families stand in layers, one below the other, with few crossings and short edges. The method of layers: longest paths
give the layers, mean places of the neighbours the order within a layer and the places. Long edges bend at a point in
each layer between. The same graph has the same places each time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import cycle, pairwise

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, NodeKind
from dfcompile.visualization.families import Family, equal_edges, families_of
from dfcompile.visualization.gantt.layout import PALETTE, escape

SWEEPS = 8
LEAF = 0.02  # weight of a node with one neighbour
MOST_BENDS = 20_000  # of all edges: beyond it long edges are drawn straight

Edge = tuple[int, int]
Floats = Sequence[float]  # one per node


class Layout(Struct, frozen=True):
    """Where nodes stand, in pixels from the left, and in layers from the top."""

    layer: tuple[int, ...]  # per node
    centre: tuple[float, ...]  # per node
    bends: tuple[tuple[float, ...], ...]  # per edge: places in the layers between source and target
    width: float

    @property
    def layers(self) -> int:
        """Number of layers."""
        return max(self.layer, default=-1) + 1


def lay_out(widths: Sequence[float], edges: Sequence[Edge], gap: float, bend_width: float) -> Layout:
    """Place nodes in layers.

    Args:
        widths: of the nodes, in pixels; nodes are numbered such that every edge leads to a higher number.
        edges: source and target, at most one per pair.
        gap: pixels between neighbours.
        bend_width: pixels that an edge has to itself where it passes a layer.
    """
    layer = _layers(len(widths), edges)
    spans = [layer[target] - layer[source] - 1 for source, target in edges]
    routed = sum(spans) <= MOST_BENDS
    sizes, layer_of = list(widths), list(layer)
    chains: list[list[int]] = []
    for (source, _), span in zip(edges, spans, strict=True):
        bends = list(range(len(sizes), len(sizes) + (span if routed else 0)))
        sizes.extend(bend_width for _ in bends)
        layer_of.extend(layer[source] + 1 + step for step in range(len(bends)))
        chains.append(bends)
    links = [
        link
        for (source, target), bends in zip(edges, chains, strict=True)
        for link in zip([source, *bends], [*bends, target], strict=True)
    ]
    rows: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for node, row in enumerate(layer_of):
        rows[row].append(node)
    centre = _places(sizes, rows, links, gap)
    left = min((centre[node] - sizes[node] / 2 for node in range(len(sizes))), default=0.0)
    centre = [place - left for place in centre]
    bent = tuple(tuple(centre[bend] for bend in chain) for chain in chains)
    width = max((centre[node] + sizes[node] / 2 for node in range(len(sizes))), default=0.0)
    return Layout(tuple(layer), tuple(centre[: len(widths)]), bent, width)


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return longest paths from the sources; a source stands right above the first node that it leads to."""
    layer = [0] * count
    has_input = [False] * count
    for source, target in sorted(edges):
        layer[target] = max(layer[target], layer[source] + 1)
        has_input[target] = True
    first: dict[int, int] = {}
    for source, target in edges:
        first[source] = min(layer[target], first.get(source, layer[target]))
    return [layer[node] if has_input[node] or node not in first else first[node] - 1 for node in range(count)]


def _places(sizes: Sequence[float], rows: list[list[int]], links: Sequence[Edge], gap: float) -> list[float]:
    """Return the centre of each node; the order within a row follows the neighbours, whole rows in turn."""
    above: list[list[int]] = [[] for _ in sizes]
    below: list[list[int]] = [[] for _ in sizes]
    for source, target in links:
        below[source].append(target)
        above[target].append(source)
    # A leaf follows its only neighbour: else it would push a chain aside at every step.
    weights = [LEAF if len(up) + len(down) == 1 else 1.0 for up, down in zip(above, below, strict=True)]
    centre = [0.0] * len(sizes)
    for row in rows:
        _spread(row, [0.0] * len(row), weights, sizes, gap, centre)
    for sweep in range(2 * SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = above if downwards else below
        for row in rows if downwards else reversed(rows):
            wanted = {node: _mean(neighbours[node], centre, weights, centre[node]) for node in row}
            if sweep < SWEEPS:
                row.sort(key=wanted.__getitem__)
            _spread(row, [wanted[node] for node in row], weights, sizes, gap, centre)
    return centre


def _mean(nodes: Sequence[int], centre: Floats, weights: Floats, otherwise: float) -> float:
    total = sum(weights[node] for node in nodes)
    return sum(weights[node] * centre[node] for node in nodes) / total if nodes else otherwise


def _spread(
    row: Sequence[int], wanted: Floats, weights: Floats, sizes: Floats, gap: float, centre: list[float]
) -> None:
    """Move the nodes of a row to where they want to be, in their order, without overlap, by least squares.

    Neighbours that push one another stand side by side around the mean of their wishes (pool adjacent violators).
    """
    offsets = [0.0]
    for node, following in pairwise(row):
        offsets.append(offsets[-1] + (sizes[node] + sizes[following]) / 2 + gap)
    groups: list[tuple[float, float, int]] = []  # weighted sum of wishes, weight, members
    for node, wish, offset in zip(row, wanted, offsets, strict=False):
        weight, members = weights[node], 1
        wishes = weight * (wish - offset)
        while groups and groups[-1][0] / groups[-1][1] >= wishes / weight:
            other, heavy, count = groups.pop()
            wishes, weight, members = wishes + other, weight + heavy, members + count
        groups.append((wishes, weight, members))
    starts = [wishes / weight for wishes, weight, members in groups for _ in range(members)]
    for node, start, offset in zip(row, starts, offsets, strict=False):
        centre[node] = start + offset


CHARACTER = 6.4  # pixels, of small letters
HEIGHT, PITCH = 26, 68  # pixels of a shape, and from layer to layer
GAP, BEND = 22.0, 34.0
MARGIN, TOP, LEAST_WIDTH = 20, 66, 470
SLANT = 8  # pixels by which a side of a down- or upsampler leans
LID = 4  # half the height of the lid of a buffer


class _At(Enum):
    """Where along the first or last part of an arrow its label stands: how far across, how far down."""

    SOURCE = (0.216, 0.342)  # three tenths along the curve
    MIDDLE = (0.5, 0.5)
    TARGET = (0.784, 0.658)


def dag_to_svg(dag: CanonicalDag) -> str:
    """Return a drawing: tasks coloured by operator, buffers white; arrows through memory dashed, with volumes.

    Args:
        dag: whose families depend on families before them alone, as extraction makes it.
    """
    families = families_of(dag)
    # The volumes that edges carry, by the families of their ends.
    place = {family.scope: at for at, family in enumerate(families)}
    ends = dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target]
    arrows: dict[tuple[int, int], list[str]] = {}
    for (source, target, volume), count in equal_edges(*ends, dag.edge_volume):
        label = f"{volume:,}" if count == 1 else f"{volume:,} ×{count}"
        arrows.setdefault((place[source], place[target]), []).append(label)
    layout = lay_out([_width(family) for family in families], list(arrows), GAP, BEND)
    width = max(round(layout.width) + 2 * MARGIN, LEAST_WIDTH)
    left = (width - layout.width) / 2
    height = TOP + max(layout.layers - 1, 0) * PITCH + HEIGHT + MARGIN
    operators = dict.fromkeys(family.origin for family in families if not family.in_memory)
    colours = dict(zip(operators, cycle(PALETTE), strict=False))  # as in the Gantt chart
    buffers = int(np.count_nonzero(dag.is_buffer))
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="11">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="22" font-size="14" font-weight="bold">{escape(dag.name)}</text>',
        (
            f'<text x="{MARGIN}" y="40" fill="#555555">{dag.tasks_count:,} tasks, {buffers:,} buffers; '
            "volumes in elements; dashed: through memory</text>"
        ),
        *_drawn_arrows(arrows, families, layout, left),
        *(part for number, family in enumerate(families) for part in _shape(family, layout, number, left, colours)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _width(family: Family) -> float:
    return CHARACTER * len(family.label) + 28


def _shape(family: Family, layout: Layout, number: int, left: float, colours: Mapping[str, str]) -> Iterator[str]:
    middle, top = left + layout.centre[number], TOP + layout.layer[number] * PITCH
    half, bottom = _width(family) / 2, top + HEIGHT
    x0, x1 = middle - half, middle + half
    fill = "#ffffff" if family.in_memory else colours[family.origin]
    title = f"<title>{escape(family.label)}: {family.kind.name.lower()} of {escape(family.origin)}</title>"
    style = f'fill="{fill}" stroke="#444444" stroke-width="0.8"'
    if family.in_memory:
        round_ = f"A{half:.1f} {LID} 0 0"
        yield (
            f'<path d="M{x0:.1f} {top + LID}V{bottom - LID}{round_} 0 {x1:.1f} {bottom - LID}V{top + LID}'
            f'{round_} 0 {x0:.1f} {top + LID}{round_} 1 {x1:.1f} {top + LID}" {style}>{title}</path>'
        )
    else:
        upper = SLANT if family.kind is NodeKind.UPSAMPLER else 0
        lower = SLANT if family.kind is NodeKind.DOWNSAMPLER else 0
        yield (
            f'<path d="M{x0 + upper:.1f} {top}H{x1 - upper:.1f}L{x1 - lower:.1f} {bottom}H{x0 + lower:.1f}Z" '
            f"{style}>{title}</path>"
        )
    drop = 2 if family.in_memory else 0  # the lid of a buffer takes room
    yield (
        f'<text x="{middle:.1f}" y="{top + HEIGHT / 2 + 4 + drop:.1f}" text-anchor="middle" fill="#111111">'
        f"{escape(family.label)}</text>"
    )


def _drawn_arrows(
    arrows: Mapping[tuple[int, int], list[str]], families: list[Family], layout: Layout, left: float
) -> Iterator[str]:
    leaving, arriving = Counter(source for source, _ in arrows), Counter(target for _, target in arrows)
    for (source, target), bends in zip(arrows, layout.bends, strict=True):
        first = layout.layer[source]
        places = [layout.centre[source], *bends, layout.centre[target]]
        rows = [*range(first, first + 1 + len(bends)), layout.layer[target]]
        points = [(left + x, TOP + row * PITCH + HEIGHT / 2) for x, row in zip(places, rows, strict=True)]
        points[0] = (points[0][0], points[0][1] + HEIGHT / 2)
        points[-1] = (points[-1][0], points[-1][1] - HEIGHT / 2 - 5)
        through_memory = families[source].in_memory or families[target].in_memory
        # A label stands away from the end at which several arrows meet.
        at = (_At.MIDDLE, _At.TARGET, _At.SOURCE, _At.MIDDLE)[(leaving[source] > 1) + 2 * (arriving[target] > 1)]
        yield from _arrow(points, ", ".join(arrows[source, target]), at, through_memory=through_memory)


def _arrow(points: list[tuple[float, float]], label: str, at: _At, *, through_memory: bool) -> Iterator[str]:
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (y1 - y0) / 2
        path += f"C{x0:.1f} {y0 + half:.1f} {x1:.1f} {y1 - half:.1f} {x1:.1f} {y1:.1f}"
    colour = "#888888" if through_memory else "#222222"
    dashes = ' stroke-dasharray="4 3"' if through_memory else ""
    yield f'<path d="{path}" fill="none" stroke="{colour}"{dashes}/>'
    x, y = points[-1]
    yield f'<path d="M{x - 3.5:.1f} {y - 1:.1f}L{x:.1f} {y + 5:.1f}L{x + 3.5:.1f} {y - 1:.1f}Z" fill="{colour}"/>'
    (x0, y0), (x1, y1) = points[-2:] if at is _At.TARGET else points[:2]
    across, down = at.value
    x, y = x0 + across * (x1 - x0), y0 + down * (y1 - y0)
    yield (
        f'<text x="{x + 4:.1f}" y="{y + 4:.1f}" fill="#333333" stroke="white" stroke-width="3" '
        f'paint-order="stroke">{escape(label)}</text>'
    )
