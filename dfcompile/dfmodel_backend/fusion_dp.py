"""Fusion as a shortest path over down-sets, by dynamic programming: exact."""

from dfcompile.dfmodel_backend.chain import Arc, ChainSpace

Chain = tuple[int, ...]  # sets of kernels, in order of execution


def fuse_by_dp(space: ChainSpace) -> Chain | None:
    """Return the fastest chain of configurations, or None if there is none.

    Ties go to fewer configurations, then to the chain whose down-sets are smaller numbers. With a limit on the
    number of configurations a state is a down-set and the number of configurations so far.
    """
    limit = space.model.options.max_configurations
    best: dict[int, dict[int, tuple[float, Arc | None]]] = {0: {0: (0.0, None)}}
    for before in space.down_sets:
        states = best.get(before)
        if states is None:
            continue
        for arc in space.arcs_from(before):
            reached = best.setdefault(arc.after, {})
            for steps, (time_ns, _) in states.items():
                if limit and steps == limit:
                    continue
                _improve(reached, steps + 1, time_ns + arc.time_ns, arc, by_steps=bool(limit))
    return _trace(best, space.model.workload.every_kernel)


def _improve(
    reached: dict[int, tuple[float, Arc | None]], steps: int, time_ns: float, arc: Arc, *, by_steps: bool
) -> None:
    if by_steps:
        if steps not in reached or time_ns < reached[steps][0]:
            reached[steps] = (time_ns, arc)
        return
    # Without a limit one state is enough: the fastest, then the one with the fewest configurations.
    old = next(iter(reached), None)
    if old is None or (time_ns, steps) < (reached[old][0], old):
        reached.clear()
        reached[steps] = (time_ns, arc)


def _trace(best: dict[int, dict[int, tuple[float, Arc | None]]], end: int) -> Chain | None:
    if end not in best or not best[end]:
        return None
    down_set = end
    steps = min(best[end], key=lambda count: (best[end][count][0], count))
    chain = []
    while down_set:
        arc = best[down_set][steps][1]
        assert arc is not None
        chain.append(arc.after ^ arc.before)
        down_set, steps = arc.before, steps - 1
    return tuple(reversed(chain))
