"""Compares what is reported of a mapping or a design with what the pure evaluators say of the decision alone.

They get names and numbers of the decision, and a model of their own: nothing that a solver kept or computed.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, evaluate_design
from dfcompile.dfmodel_backend.evaluate.graphs import Mapping as KernelMapping
from dfcompile.dfmodel_backend.evaluate.graphs import evaluate_sharding
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import VerificationError
from dfcompile.records import fields_of

RELATIVE = 1e-9  # sums in another order


def recompute_mapping(graph: DataflowGraph, system: System, mapping: KernelMapping) -> None:
    """Compare every figure of a mapping with the evaluator's.

    Args:
        graph: that is mapped.
        system: with the chips in use.
        mapping: as it will be reported.

    Raises:
        VerificationError: naming the figure, found against expected.
    """
    assignment = tuple(config.kernels for config in mapping.figures.configs)
    expected = evaluate_sharding(graph, system, dict(mapping.sharding), assignment, mapping.options)
    reject_differences(mapping.figures, expected)


def reject_differences(found: object, expected: object) -> None:
    """Compare figures part by part.

    Raises:
        VerificationError: naming the figure, found against expected.
    """
    for where, one, other in _differences(found, expected, ()):
        raise VerificationError(f"figure {'.'.join(where)}: found {one} against {other} of the evaluator")


def _differences(
    found: object, expected: object, where: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], object, object]]:
    """Yield where two values differ, field by field, with what stands there."""
    held, other = _held(found), _held(expected)
    if held is None or other is None:
        if not _is_same(found, expected):
            yield where, found, expected
        return
    if list(held) != list(other):
        yield where, f"{len(held)} parts", f"{len(other)} parts"
        return
    for name in held:
        yield from _differences(held[name], other[name], (*where, str(name)))


def _held(value: object) -> Mapping[Any, object] | None:
    """Return the parts of a value by name or number; nothing of one that has none."""
    match value:
        case Mapping():
            return value
        case tuple():
            return dict(enumerate(value))
    return fields_of(value)


def _is_same(found: object, expected: object) -> bool:
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return math.isclose(found, expected, rel_tol=RELATIVE)
    return found == expected


def recompute_design(
    design: Design, decision: Decision, figures: DesignFigures, moved_bytes: float, compatibility: Compatibility
) -> None:
    """Compare every figure of a solved design with the evaluator's.

    Args:
        design: with its degrees.
        decision: what was decided of it.
        figures: as they will be reported.
        moved_bytes: by the sharding, as they will be reported.
        compatibility: of the figures.

    Raises:
        VerificationError: naming the figure, found against expected.
    """
    reject_differences(figures, evaluate_design(design, decision, compatibility))
    expected_bytes = DecidedDesign(design, decision, compatibility).sharding_bytes
    reject_differences({"sharding_bytes": moved_bytes}, {"sharding_bytes": expected_bytes})
