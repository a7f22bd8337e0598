"""What operators are lowered to: those alike together, in the report, and as a sentence with the most work first."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.frontend import ChosenExpansion
from dfcompile.report.figure import figure, record

NO_CHOICE: Final = "no operator has more than one expansion"
_LITTLE: Final = 5e-3  # of the work: those below are told together


@record()
class LoweringSummary:
    """Operators that are lowered by the same expansions."""

    operators: tuple[str, ...] = figure("the user's operators, in the order of the model", least=1)
    expansions: Mapping[str, str] = figure(
        "type of the operator, or of a canonical operator in it → expansion, for those that offer a choice"
    )
    work_cycles: int = figure("of all their tasks")


def lowering_summaries(offered: Sequence[ChosenExpansion], dag: CanonicalDag) -> tuple[LoweringSummary, ...]:
    """Return the operators that offer a choice, grouped by what they are lowered to, most work first.

    Args:
        offered: the expansions that were chosen among several.
        dag: what they became.
    """
    taken: dict[str, dict[str, dict[str, None]]] = {}
    for one in offered:
        taken.setdefault(one.origin, {}).setdefault(one.op_type, {})[one.name] = None
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for origin, names in taken.items():
        groups.setdefault(tuple((op_type, "+".join(found)) for op_type, found in names.items()), []).append(origin)
    work = _work_by_origin(dag)
    found = (
        LoweringSummary(tuple(origins), MappingProxyType(dict(key)), sum(work.get(origin, 0) for origin in origins))
        for key, origins in groups.items()
    )
    return tuple(sorted(found, key=lambda each: -each.work_cycles))


def _work_by_origin(dag: CanonicalDag) -> dict[str, int]:
    tasks = np.flatnonzero(dag.is_computational)
    by_scope = np.zeros(len(dag.scopes), dtype=np.int64)
    np.add.at(by_scope, dag.node_scope[tasks], dag.work[tasks])
    work: dict[str, int] = {}
    for scope, cycles in zip(dag.scopes, by_scope.tolist(), strict=True):
        work[scope.origin] = work.get(scope.origin, 0) + cycles
    return work


class Lowered(Struct, frozen=True):
    """A `LoweringSummary`, or what is read of one in a report: operators, expansions, and their part of all work."""

    operators: Sequence[str]
    expansions: Mapping[str, str]
    share: float

    @property
    def expansions_text(self) -> str:
        """As rules of ``--expand``."""
        return " ".join(f"{op_type}={name}" for op_type, name in self.expansions.items())

    @property
    def words(self) -> str:
        """What it is and of which operators: ``Conv=direct in conv1 and 3 more (83 % of the work)``."""
        return f"{self.expansions_text} in {_listed(self.operators)}"


def lowered_texts(lowered: Sequence[Lowered]) -> Iterator[str]:
    """Yield sentences on a lowering, each with one more of its groups, from the first alone to all that matter.

    Args:
        lowered: most work first.
    """
    if not lowered:
        yield NO_CHOICE
    told: list[str] = []
    for at, one in enumerate(lowered):
        if at and one.share < _LITTLE:
            return
        told.append(f"{one.words} ({_percent(one.share)}{' of the work' if not at else ''})")
        others = lowered[at + 1 :]
        count = sum(len(other.operators) for other in others)
        more = f"{count:,} other operator{'s' if count > 1 else ''} ({_percent(sum(other.share for other in others))})"
        yield "; ".join((*told, *([more] if others else [])))


def _listed(names: Sequence[str]) -> str:
    match len(names):
        case 1:
            return names[0]
        case 2:
            return " and ".join(names)
        case _:
            return f"{names[0]} and {len(names) - 1:,} more"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= _LITTLE or not share else "<1 %"
