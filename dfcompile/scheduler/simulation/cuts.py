"""Where to cut the sequences of a unit so that no access before the cut awaits one after it."""

from dfcompile.scheduler.simulation.access_sequence import Place
from dfcompile.scheduler.simulation.stretch import StreamingUnit

_MOST_SWEEPS = 100


def cut(unit: StreamingUnit, part: int, parts: int) -> tuple[Place, ...]:
    """Return how far each task gets if none goes beyond a fraction of its sequence, and all as far as they then can.

    A task can read what has been written and write where places have been freed. From the fraction itself the
    places are lowered until that holds; as all of them may be lowered together, the order does not matter.

    Args:
        unit: the tasks.
        part: numerator of the fraction.
        parts: denominator of the fraction.
    """
    whole = tuple(Place(reads, writes) for reads, writes in zip(unit.reads, unit.writes, strict=True))
    places = [_place(place, -(-place.reads * part // parts), place.writes * part // parts) for place in whole]
    forward = True
    for _ in range(_MOST_SWEEPS):
        changed = False
        nodes = range(len(places))
        for node in nodes if forward else reversed(nodes):
            lowered = _lowered(unit, node, places)
            changed |= lowered != places[node]
            places[node] = lowered
        if not changed:
            return tuple(places)
        forward = not forward
    return whole


def _lowered(unit: StreamingUnit, node: int, places: list[Place]) -> Place:
    reads = min((places[unit.source[edge]].writes for edge in unit.inputs[node]), default=places[node].reads)
    writes = min(
        (places[unit.target[edge]].reads + unit.capacity[edge] for edge in unit.outputs[node] if unit.is_bounded(edge)),
        default=places[node].writes,
    )
    whole = Place(unit.reads[node], unit.writes[node])
    return _place(whole, min(reads, places[node].reads), min(writes, places[node].writes))


def _place(whole: Place, reads: int, writes: int) -> Place:
    """Return how far a sequence gets with limits to its reads and writes."""
    if not whole.reads:
        return whole
    # Read i (from 0) comes after write ``i * writes // reads``.
    reads = min(reads, -(-(writes + 1) * whole.reads // whole.writes), whole.reads)
    return Place(reads, min(writes, reads * whole.writes // whole.reads))
