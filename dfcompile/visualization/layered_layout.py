"""Places for the nodes of a DAG in layers, one below the other, with few crossings and short edges.

The method of layers: longest paths give the layers, mean places of the neighbours the order within a layer and the
places. Long edges bend at a point in each layer between. The same graph has the same places each time.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

SWEEPS = 8
LEAF = 0.02  # weight of a node with one neighbour
MOST_BENDS = 20_000  # of all edges: beyond it long edges are drawn straight

Edge = tuple[int, int]


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
    return Layout(
        tuple(layer),
        tuple(centre[: len(widths)]),
        tuple(tuple(centre[bend] for bend in bends) for bends in chains),
        max((centre[node] + sizes[node] / 2 for node in range(len(sizes))), default=0.0),
    )


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


def _mean(nodes: Sequence[int], centre: Sequence[float], weights: Sequence[float], otherwise: float) -> float:
    total = sum(weights[node] for node in nodes)
    return sum(weights[node] * centre[node] for node in nodes) / total if nodes else otherwise


def _spread(
    row: Sequence[int],
    wanted: Sequence[float],
    weights: Sequence[float],
    sizes: Sequence[float],
    gap: float,
    centre: list[float],
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
