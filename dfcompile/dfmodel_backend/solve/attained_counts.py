"""Maps a lowering on several chips: of a few shardings on a few numbers of chips the one that is attained fastest."""

import math
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.kernel import ProgramShare
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.attained.mapping import NOTHING, TaskMapping, map_tasks
from dfcompile.dfmodel_backend.attained.search import chain_bound_ns
from dfcompile.dfmodel_backend.attained.task_model import ChipsInUse, TaskModel
from dfcompile.dfmodel_backend.check.collectives import check_exchanges
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping, check_task_share
from dfcompile.dfmodel_backend.options import NS_PER_S, Assumption
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, Sharding, SharedGraph
from dfcompile.dfmodel_backend.sharding.program_shares import chip_share
from dfcompile.dfmodel_backend.solve.chip_counts import ChipCounts, SplitOnChips, exchanges_in_words, times_in_words
from dfcompile.errors import InfeasibleError, VerificationError
from dfcompile.host.stages import counted
from dfcompile.records import replace

LowerShare = Callable[[ProgramShare], CanonicalDag | tuple[str, ...]]  # or the kernels that cannot be lowered so
MOST_NAMED = 8
_PROVED = (Assumption("bound on several chips", "of the shardings that were tried", "--volumes, --granularity"),)


class _Share(Struct, frozen=True, eq=False):
    """A sharding over a number of chips, lowered.

    Attributes:
        tasks: of the share of a chip.
        bound_s: a time that no mapping of it beats that would be found.
        on_chips: what all chips have; None on one.
        whole: kernels that every chip runs whole, as no share of them can be lowered.
        is_undivided: whether each of several chips runs everything, and so takes as long as one.
    """

    tasks: TaskModel
    bound_s: float
    on_chips: SharedGraph | None = None
    whole: tuple[str, ...] = ()
    is_undivided: bool = False


class _Count(Struct, eq=False):
    """Shardings over a number of chips, and what is found for them; a mapping is found when it may be the fastest.

    Attributes:
        shares: to try.
        mappings: of some of the shares, by their places.
        accepted: of the mappings, the one that the checkers accepted last.
        refused: why there is none; empty if it is not known yet that there is none.
    """

    shares: tuple[_Share, ...] = ()
    mappings: dict[int, TaskMapping | None] = field(default_factory=dict)
    accepted: TaskMapping | None = None
    refused: str = ""

    @property
    def fastest(self) -> tuple[TaskMapping, _Share] | None:
        """Of what is found the fastest, ties to the share that was tried first."""
        found = [(one, self.shares[place]) for place, one in sorted(self.mappings.items()) if one is not None]
        return min(found, key=lambda one: one[0].time_s, default=None)

    @property
    def bound_s(self) -> float:
        """A time that none of the shares beats."""
        return min((share.bound_s for share in self.shares), default=math.inf)


class AttainedCounts:
    """Maps a lowering on chips of a system."""

    def __init__(self, tasks: TaskModel, counts: ChipCounts, lower: LowerShare, *, adds_up: bool = True) -> None:
        """Prepare; nothing is mapped yet.

        Args:
            tasks: of the whole lowering on one chip of the system.
            counts: ideals of the same kernels, and which numbers of chips are asked for.
            lower: gives the lowering of a share by the expansions of the whole, or says which kernels have none.
            adds_up: whether the work of all shares is no less than that of the whole, however it is shared; else the
                bound on several chips is that of the shardings that are tried.
        """
        self._adds_up = adds_up
        self._tasks = tasks
        self._least = LeastCosts(tasks)
        self._counts = counts
        self._lower = lower

    def fastest(self) -> Iterator[TaskMapping]:
        """Yield the fastest mapping on so many chips or fewer, for each number of chips that is asked for.

        One chip, powers of two, the number of chips itself, what its ideal uses and what was tried for the numbers
        before are tried, each with the ideal's sharding and with the one that exchanges least; what cannot be the
        fastest by its lower bounds is not scheduled. Ties go to fewer chips. What is spoken of is checked.

        Raises:
            InfeasibleError: no number of chips holds the lowering; the message is that of one chip.
            UserError: a replay is too large.
            VerificationError: a mapping breaks a rule.
        """
        known: dict[int, _Count] = {}
        for chips in self._counts.asked:
            yield self._fastest(chips, known)

    def _fastest(self, chips: int, known: dict[int, _Count]) -> TaskMapping:
        counts = {1, *(count for count in known if count <= chips)}
        if chips > 1:
            counts |= {chips, self._counts.fastest_count(chips), *(1 << power for power in range(chips.bit_length()))}
        tried: dict[int, _Count] = {}
        best: tuple[TaskMapping, _Share] | None = None
        for count in counted(sorted(counts, reverse=True)):
            below_s = math.inf if best is None else best[0].time_s
            if count < chips and self._adds_up and self._least.bound_on_chips_s(count) > below_s * (1 + NOTHING):
                continue
            if count not in known:
                known[count] = self._on(count)
            tried[count] = known[count]
            found = self._try(known[count], below_s)
            if found is not None and found[0].time_s <= below_s * (1 + NOTHING):
                best = found
        if best is None:
            raise InfeasibleError(tried[1].refused)
        for one in tried.values():
            self._check(one)
        if chips == 1:
            return best[0]
        bound_s = self._least.bound_on_chips_s(chips) if self._adds_up else min(one.bound_s for one in tried.values())
        if best[0].time_s < bound_s * (1 - NOTHING):
            raise VerificationError(f"{best[0].chips} chips: found {best[0].time_s} s against at least {bound_s} s")
        is_optimal = best[0].time_s <= bound_s * (1 + NOTHING)
        return replace(
            best[0],
            bound_time_s=min(bound_s, best[0].time_s) if is_optimal else bound_s,
            least_cycles=self._least.cycles_on_chips(chips) if self._adds_up else 0,
            is_optimal=is_optimal,
            is_best_chain=best[0].is_best_chain or is_optimal,
            assumptions=(*best[0].assumptions, *_explanation(tried, *best, chips), *(() if self._adds_up else _PROVED)),
        )

    def _on(self, count: int) -> _Count:
        if count == 1:
            return _Count((_Share(self._tasks, self._least.bound_ns() / NS_PER_S),))
        split = self._counts.split_on(count)
        if isinstance(split, InfeasibleError):
            return _Count(refused=str(split))
        return _Count(tuple(self._share(split, one) for one in split.shardings))

    def _try(self, count: _Count, below_s: float) -> tuple[TaskMapping, _Share] | None:
        """Map the shares that may take less than a time; return the fastest that is known."""
        for place, share in sorted(enumerate(count.shares), key=lambda one: one[1].bound_s):
            may_be_fastest = share.bound_s <= below_s * (1 + NOTHING) and not share.is_undivided
            if place not in count.mappings and may_be_fastest:
                count.mappings[place] = None
                try:
                    count.mappings[place] = map_tasks(share.tasks)
                except InfeasibleError as error:
                    count.refused = count.refused or str(error)
            found = count.fastest
            below_s = below_s if found is None else min(below_s, found[0].time_s)
        return count.fastest

    def _share(self, split: SplitOnChips, sharding: Sharding) -> _Share:
        """Return what a chip runs under a sharding; kernels of which no share can be lowered are whole."""
        whole: dict[str, None] = {}
        chosen = dict(sharding)
        while True:
            share = chip_share(self._tasks.dag, split.chips, chosen)
            lowered = self._lower(share.program)
            if isinstance(lowered, CanonicalDag):
                break
            whole.update(dict.fromkeys(lowered))
            chosen.update(dict.fromkeys(lowered, (WHOLE,) * len(split.chips)))
        graph = split.shared({name: chosen[name] for name in split.kernels})
        used = ChipsInUse(split.part, tuple(share.choices.items()), graph.exchanges, share.apart)
        alone = TaskModel(lowered, split.part, self._tasks.scheduling, self._tasks.planning, self._tasks.overlap, used)
        is_undivided = all(choice == WHOLE for choices in chosen.values() for choice in choices)
        return _Share(alone, chain_bound_ns(alone) / NS_PER_S, graph, tuple(whole), is_undivided)

    def _check(self, count: _Count) -> None:
        """Check the fastest mapping on a number of chips, if there is one that was not checked before."""
        if count.fastest is None or count.fastest[0] is count.accepted:
            return
        count.accepted, share = count.fastest
        tasks = share.tasks
        if share.on_chips is not None:
            check_exchanges(share.on_chips.graph, tasks.system)
            check_task_share(self._tasks.dag, tasks.dag, tasks.system, count.accepted)
        check_task_mapping(tasks.dag, tasks.system, tasks.overlap, count.accepted)


def _explanation(tried: dict[int, _Count], best: TaskMapping, share: _Share, chips: int) -> Iterator[Assumption]:
    """Say what each number of chips takes, what the chips exchange, and which kernels are whole on each of them."""
    for number, count in sorted(tried.items()):
        name = f"attained on {number} of {chips} chips"
        found = count.fastest
        if found is None and count.bound_s < math.inf and not count.mappings:
            yield Assumption(name, f"no less than {count.bound_s * 1e6:.4g} µs", "--chips")
        elif found is None:
            yield Assumption(f"{name}, not possible", count.refused, "--chips")
        else:
            fastest = ", the fastest" if found[0] is best else ""
            yield Assumption(f"{name}{fastest}", times_in_words(found[0].time_s, found[0].configurations), "--chips")
    if best.chips == 1:
        return
    yield from exchanges_in_words("attained exchange", best.exchanges, best.chips)
    yield Assumption(
        "shares of kernels on several chips",
        "the chip with most of it: the first iterations of each loop that is split, by the same expansion; what is "
        "exchanged leaves its configuration and is read in a later one",
        "dfcompile",
    )
    if share.whole:
        names = ", ".join(share.whole[:MOST_NAMED]) + (", …" if len(share.whole) > MOST_NAMED else "")
        yield Assumption(
            "kernels whole on every chip",
            f"{len(share.whole)}: {names}: their operators do not say what a share is",
            "dfcompile",
        )
