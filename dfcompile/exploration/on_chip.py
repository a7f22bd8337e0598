"""What a schedule keeps in memory, and which of it lies on the chip: what saves most traffic together, exactly."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError
from dfcompile.scheduler import Schedule

_NEVER = np.iinfo(np.int64).max


class Store(Struct, frozen=True):
    """An array that passes through memory: a buffer, or what the tasks of a scope hand on without a stream.

    Attributes:
        name: of the array, or of the scope.
        size_bytes: of all of it.
        first_cycle: in which a task that touches it starts.
        end_cycle: by which all tasks that touch it have ended.
        traffic_bytes: off the chip if it lies there: each element as often as tasks read or write it.
        least_bytes: off the chip if it lies on the chip: inputs and weights come once, results leave once.
    """

    name: str
    size_bytes: int
    first_cycle: int
    end_cycle: int
    traffic_bytes: int
    least_bytes: int

    @property
    def saved_bytes(self) -> int:
        """What it saves to have it on the chip."""
        return self.traffic_bytes - self.least_bytes


def stores_of(dag: CanonicalDag, arrays: Mapping[str, Array], schedule: Schedule) -> tuple[Store, ...]:
    """Return the stores of a schedule: arrays in the order of buffers, then scopes whose streams were cut.

    What a task hands to several others is written once. An array is there from the start of the first task that writes
    it (of an input, that reads it) to the end of the last that touches it.

    Args:
        dag: the graph.
        arrays: by name; a buffer has the name of its array as origin.
        schedule: of the graph.
    """
    task, buffer = dag.is_computational, dag.is_buffer
    stored = np.flatnonzero((task | buffer)[dag.edge_source] & (task | buffer)[dag.edge_target] & ~schedule.streamed)
    source, target = dag.edge_source[stored].astype(np.int64), dag.edge_target[stored].astype(np.int64)
    moved, writes, reads = dag.edge_volume[stored] * dag.edge_element_bytes[stored], task[source], task[target]
    cut = writes & reads
    place = dag.node_scope[np.where(buffer[target], target, source)]
    made = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(made, source[cut], moved[cut])
    written, read, end = np.zeros((3, len(dag.scopes)), dtype=np.int64)
    np.add.at(written, place[writes & ~cut], moved[writes & ~cut])
    np.add.at(written, dag.node_scope, made)
    np.add.at(read, place[reads], moved[reads])
    first = np.full_like(end, _NEVER)
    for touches, tasks in ((writes, source[writes]), (reads, target[reads])):
        np.minimum.at(first, place[touches], schedule.start[tasks])
        np.maximum.at(end, place[touches], schedule.last_out[tasks])
    touched, found = set(distinct(place).tolist()), []
    in_buffers = [scope for scope in dict.fromkeys(dag.node_scope[buffer].tolist()) if scope in touched]
    handed_on = sorted(touched.difference(in_buffers))
    for at in (*in_buffers, *handed_on):
        ins, outs, cycles = int(written[at]), int(read[at]), (int(first[at]), int(end[at]))
        if at in handed_on:
            name = f"{dag.scopes[at].name} handed on"
            found.append(Store(name, ins, *cycles, traffic_bytes=ins + outs, least_bytes=0))
            continue
        array = arrays[dag.scopes[at].origin]
        size = array.elements * array.element_bytes
        comes = 0 if ins else min(size, outs)
        leaves = ins if not array.is_transient or outs == 0 else 0
        found.append(Store(array.name, size, *cycles, traffic_bytes=ins + outs, least_bytes=leaves + comes))
    return tuple(found)


_MOST_STATES = 4096  # sets of arrays that are on the chip together; beyond that an integer program is solved
_MOST_NODES = 10**9  # of its search tree: it runs to the end


class OnChip(Struct, frozen=True):
    """What lies on the chip.

    Attributes:
        stores: their numbers, ascending.
        io_bytes: off the chip, of all stores.
        peak_bytes: of memory that is in use at most.
    """

    stores: tuple[int, ...]
    io_bytes: int
    peak_bytes: int


def choose_on_chip(stores: Sequence[Store], memory_bytes: int) -> OnChip:
    """Return the arrays on the chip with which the least traffic is left; no other choice leaves less.

    An array is on the chip for all of its time or never; in no cycle they take more than the memory has.

    Args:
        stores: of a schedule.
        memory_bytes: of the chip.
    """
    worth = [at for at, store in enumerate(stores) if store.saved_bytes > 0 and store.size_bytes <= memory_bytes]
    together = ([worth[at] for at in members] for members in _together([stores[at] for at in worth]))
    # Those that are there at once and do not all fit.
    crowds = [members for members in together if sum(stores[at].size_bytes for at in members) > memory_bytes]
    contested = sorted({at for crowd in crowds for at in crowd})
    chosen = set(worth) - set(contested)
    if contested:
        best = _by_time(stores, contested, memory_bytes)
        chosen |= _by_program(stores, contested, crowds, memory_bytes) if best is None else best
    kept = tuple(sorted(chosen))
    traffic = sum(store.traffic_bytes for store in stores) - sum(stores[at].saved_bytes for at in kept)
    return OnChip(kept, traffic, peak_bytes([stores[at] for at in kept]))


def peak_bytes(stores: Sequence[Store]) -> int:
    """Return what stores take at most in any cycle."""
    return max((sum(stores[at].size_bytes for at in together) for together in _together(stores)), default=0)


def _together(stores: Sequence[Store]) -> list[list[int]]:
    """Return which stores are there when each of them begins: never more are."""
    cycles = sorted({store.first_cycle for store in stores})
    return [[at for at, store in enumerate(stores) if _meets(store, cycle)] for cycle in cycles]


def _meets(store: Store, cycle: int) -> bool:
    return store.first_cycle == cycle or store.first_cycle < cycle < store.end_cycle


_States = dict[tuple[int, ...], tuple[int, tuple[int, ...]]]  # on the chip -> saved, all chosen


def _by_time(stores: Sequence[Store], contested: Sequence[int], memory_bytes: int) -> set[int] | None:
    """Return the best choice by dynamic programming over time, or ``None`` if too many sets can be there at once."""
    states: _States = {(): (0, ())}
    for at in sorted(contested, key=lambda each: (stores[each].first_cycle, each)):
        follow: _States = {}
        for held, (saved, chosen) in states.items():
            left = tuple(each for each in held if _meets(stores[each], stores[at].first_cycle))
            _keep_better(follow, left, (saved, chosen))
            if sum(stores[each].size_bytes for each in left) + stores[at].size_bytes <= memory_bytes:
                _keep_better(follow, (*left, at), (saved + stores[at].saved_bytes, (*chosen, at)))
        if len(follow) > _MOST_STATES:
            return None
        states = follow
    return set(max(states.values(), key=lambda state: (state[0], [-at for at in state[1]]))[1])


def _keep_better(states: _States, held: tuple[int, ...], state: tuple[int, tuple[int, ...]]) -> None:
    if held not in states or state[0] > states[held][0]:
        states[held] = state


def _by_program(
    stores: Sequence[Store], contested: Sequence[int], crowds: Sequence[Sequence[int]], memory_bytes: int
) -> set[int]:
    """Return the best choice by an integer program: one 0/1 variable per store, one row per crowd.

    Raises:
        VerificationError: the solver did not end with an optimum, though leaving out everything is a solution.
    """
    import pulp

    problem = pulp.LpProblem("on_chip", pulp.LpMaximize)
    taken = {at: problem.add_variable(f"on_chip_{at}", cat="Binary") for at in contested}
    problem += pulp.lpSum(stores[at].saved_bytes * taken[at] for at in contested)
    for crowd in crowds:
        problem += pulp.lpSum(stores[at].size_bytes * taken[at] for at in crowd) <= memory_bytes
    outcome = solve(problem, MilpOptions(max_nodes=_MOST_NODES))
    if outcome is not Outcome.OPTIMAL:
        raise VerificationError(f"arrays on chip: the solver ended with {outcome.value} against an optimum")
    return {at for at in contested if is_one(taken[at])}
