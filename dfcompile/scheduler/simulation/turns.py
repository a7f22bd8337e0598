"""Whether and how the tasks of a unit can run one after another."""

import numpy as np

from dfcompile.scheduler.simulation.components import joined
from dfcompile.scheduler.simulation.stretch import StreamingUnit


def in_turn(nodes: list[int], links: list[tuple[int, int]]) -> list[int]:
    """Return nodes so that each comes after those linked to it, as far as possible; those on circles come last."""
    followers: dict[int, list[int]] = {node: [] for node in nodes}
    missing = dict.fromkeys(nodes, 0)
    for before, after in links:
        followers[before].append(after)
        missing[after] += 1
    ordered = [node for node in nodes if not missing[node]]
    for node in ordered:  # grows while it is read
        for follower in followers[node]:
            missing[follower] -= 1
            if not missing[follower]:
                ordered.append(follower)
    return ordered + [node for node in nodes if missing[node] > 0]


def ends_come_in_turn(unit: StreamingUnit) -> bool:
    """Whether no task can wait, through others, for an end that waits for the task itself.

    Tasks joined by FIFOs that can be full wait for one another both ways. If between such groups all waits for ends and
    for elements lead one way, none of them is part of a circle of waits. Else there may be circles in which no time
    passes: access times would be found for what never takes place.
    """
    if not any(unit.waits):
        return True
    edges = range(len(unit.edges))
    bounded = [edge for edge in edges if unit.is_bounded(edge)]
    group = joined(
        len(unit.nodes),
        np.array([unit.source[edge] for edge in bounded], dtype=np.int64),
        np.array([unit.target[edge] for edge in bounded], dtype=np.int64),
    ).tolist()
    streams = [(unit.source[edge], unit.target[edge]) for edge in edges if not unit.is_bounded(edge)]
    waits = [(other, node) for node, others in enumerate(unit.waits) for other in others]
    links = [(group[before], group[after]) for before, after in waits]
    links += [(group[before], group[after]) for before, after in streams if group[before] != group[after]]
    place = {each: number for number, each in enumerate(in_turn(sorted(set(group)), links))}
    return all(place[before] < place[after] for before, after in links)
