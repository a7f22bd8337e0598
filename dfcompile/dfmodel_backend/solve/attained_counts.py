"""Maps a lowering on several chips: of a few shardings on a few numbers of chips the one that is attained fastest."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.share import ProgramShare
from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.attained.chips_in_use import ChipsInUse
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.attained.mapping import NOTHING, TaskMapping, map_tasks
from dfcompile.dfmodel_backend.attained.task_model import TaskModel
from dfcompile.dfmodel_backend.check.exchanges import check_exchanges
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
from dfcompile.dfmodel_backend.check.task_shares import check_task_share
from dfcompile.dfmodel_backend.sharding.graphs import Sharding
from dfcompile.dfmodel_backend.sharding.kernel_splits import WHOLE
from dfcompile.dfmodel_backend.sharding.program_shares import ChipShare, chip_share
from dfcompile.dfmodel_backend.solve.chip_counts import ChipCounts, SplitOnChips, exchange_in_words
from dfcompile.errors import InfeasibleError

LowerShare = Callable[[ProgramShare], CanonicalDag | tuple[str, ...]]  # or the kernels that cannot be lowered so
MOST_NAMED = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Attained:
    """What is attained on a number of chips.

    Attributes:
        mapping: the fastest; None if there is none.
        whole: kernels that every chip runs whole, as no share of them can be lowered.
        refused: why there is none.
    """

    mapping: TaskMapping | None
    whole: tuple[str, ...] = ()
    refused: str = ""


class AttainedCounts:
    """Maps a lowering on chips of a system; what is found for a number of chips is kept."""

    def __init__(self, tasks: TaskModel, counts: ChipCounts, lower: LowerShare) -> None:
        """Prepare; nothing is mapped yet.

        Args:
            tasks: of the whole lowering on one chip of the system.
            counts: ideals of the same kernels.
            lower: gives the lowering of a share by the expansions of the whole, or says which kernels have none.
        """
        self._tasks = tasks
        self._counts = counts
        self._lower = lower
        self._found: dict[int, _Attained] = {}

    def fastest(self, chips: int) -> TaskMapping:
        """Return the fastest mapping on so many chips or fewer.

        One chip, powers of two, the number of chips itself, what its ideal uses and what was asked for before are
        tried, each with the ideal's sharding and with the one that exchanges least. Ties go to fewer chips. Every
        mapping is checked.

        Raises:
            InfeasibleError: no number of chips holds the lowering; the message is that of one chip.
            UserError: a replay is too large.
            VerificationError: a mapping breaks a rule.
        """
        if chips == 1:
            found = self._on(1)
            if found.mapping is None:
                raise InfeasibleError(found.refused)
            return found.mapping
        tried = {count: self._on(count) for count in sorted(self._candidates(chips))}
        mappings = [one for one in tried.values() if one.mapping is not None]
        if not mappings:
            raise InfeasibleError(tried[1].refused)
        best = min(mappings, key=lambda one: _time_s(one.mapping))
        assert best.mapping is not None
        bound_s = LeastCosts(self._tasks).bound_on_chips_s(chips)
        is_optimal = best.mapping.time_s <= bound_s * (1 + NOTHING)
        said = (*best.mapping.assumptions, *_explanation(tried, best, chips))
        return replace(
            best.mapping,
            bound_time_s=min(bound_s, best.mapping.time_s) if is_optimal else bound_s,
            is_optimal=is_optimal,
            assumptions=said,
        )

    def _candidates(self, chips: int) -> set[int]:
        powers = {1 << power for power in range(chips.bit_length()) if 1 << power <= chips}
        before = {count for count in self._found if count <= chips}
        return {*powers, *before, chips, self._counts.fastest(chips).chips}

    def _on(self, count: int) -> _Attained:
        if count not in self._found:
            self._found[count] = self._alone() if count == 1 else self._best_of(count)
        return self._found[count]

    def _alone(self) -> _Attained:
        tasks = self._tasks
        try:
            found = map_tasks(tasks)
        except InfeasibleError as error:
            return _Attained(None, refused=str(error))
        check_task_mapping(tasks.dag, tasks.system, tasks.overlap, found)
        return _Attained(found)

    def _best_of(self, count: int) -> _Attained:
        split = self._counts.split_on(count)
        if isinstance(split, InfeasibleError):
            return _Attained(None, refused=str(split))
        tried = [self._under(split, sharding) for sharding in split.shardings]
        return min(tried, key=lambda one: _time_s(one.mapping))

    def _under(self, split: SplitOnChips, sharding: Sharding) -> _Attained:
        """Return the mapping under a sharding; kernels of which no share can be lowered are whole."""
        whole: dict[str, None] = {}
        chosen = dict(sharding)
        while True:
            share = chip_share(self._tasks.dag, split.chips, chosen)
            lowered = self._lower(share.program)
            if isinstance(lowered, CanonicalDag):
                break
            whole.update(dict.fromkeys(lowered))
            chosen.update(dict.fromkeys(lowered, (WHOLE,) * len(split.chips)))
        try:
            return _Attained(self._mapped(split, chosen, share, lowered), tuple(whole))
        except InfeasibleError as error:
            return _Attained(None, tuple(whole), str(error))

    def _mapped(self, split: SplitOnChips, chosen: Sharding, share: ChipShare, lowered: CanonicalDag) -> TaskMapping:
        graph = split.shared({name: chosen[name] for name in split.kernels})
        used = ChipsInUse(split.part, tuple(share.choices.items()), graph.exchanges, share.apart)
        tasks = replace(self._tasks, dag=lowered, system=split.part, chips=used, least_cycles=0)
        found = map_tasks(tasks)
        check_exchanges(graph.graph, graph.exchanges, split.part)
        check_task_share(self._tasks.dag, lowered, split.part, found)
        check_task_mapping(lowered, split.part, tasks.overlap, found)
        return found


def _time_s(mapping: TaskMapping | None) -> float:
    return float("inf") if mapping is None else mapping.time_s


def _explanation(tried: dict[int, _Attained], best: _Attained, chips: int) -> Iterator[Assumption]:
    """Say what each number of chips takes, what the chips exchange, and which kernels are whole on each of them."""
    for count, found in tried.items():
        name = f"attained on {count} of {chips} chips"
        if found.mapping is None:
            yield Assumption(f"{name}, not possible", found.refused, "--chips")
            continue
        configurations = found.mapping.configurations
        sums = (
            f"{kind} {sum(float(getattr(one, f'{kind}_ns')) for one in configurations) / 1e3:.4g}"
            for kind in ("compute", "memory", "network")
        )
        fastest = ", the fastest" if found is best else ""
        yield Assumption(f"{name}{fastest}", f"{found.mapping.time_s * 1e6:.4g} µs: {', '.join(sums)} µs", "--chips")
    if best.mapping is None or best.mapping.chips == 1:
        return
    for exchange in best.mapping.exchanges:
        yield Assumption(
            f"attained exchange of {exchange.tensor!r} on {best.mapping.chips} chips",
            exchange_in_words(exchange),
            "[ko24, section 3]",
        )
    yield Assumption(
        "shares of kernels on several chips",
        "the chip with most of it: the first iterations of each loop that is split, by the same expansion; what is "
        "exchanged leaves its configuration and is read in a later one",
        "dfcompile",
    )
    if best.whole:
        names = ", ".join(best.whole[:MOST_NAMED]) + (", …" if len(best.whole) > MOST_NAMED else "")
        yield Assumption(
            "kernels whole on every chip", f"{len(best.whole)}: {names}: their operators do not say what a share is",
            "dfcompile",
        )  # fmt: skip
