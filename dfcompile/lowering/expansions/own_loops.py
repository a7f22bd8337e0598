"""Canonical operators that are one scope of the loops that they have themselves: Copy, Elementwise, Reduce."""

from collections.abc import Sequence
from typing import cast

from dfcompile.canonical_dag import LoopKind
from dfcompile.lowering import CanonicalNode, CanonicalOperator, MapFragment, Reduction, expansion
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.operators import Copy, Elementwise, Reduce
from dfcompile.lowering.operators.loop_nest import Index


@expansion(Copy, "map", source="dematteis23", default=True)
def copy(op: CanonicalNode[Copy], build: MapFragment) -> None:
    """``Y[write(i)] = X[read(i)]``: one element-wise task in the order of the loops."""
    _scope(op, build, "a")


@expansion(Elementwise, "map", source="dematteis23", default=True)
def elementwise(op: CanonicalNode[Elementwise], build: MapFragment) -> None:
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``: one element-wise task in row order."""
    _scope(op, build, op.operator.expression)


@expansion(Reduce, "map", source="dematteis23", default=True)
def reduce_map(op: CanonicalNode[Reduce], build: MapFragment) -> None:
    """``Y[kept] = reduce over the others of expression(a[i, …], b[i, …], …)``: one downsampler.

    The kept dimensions are the outer loops, in row order; the reduced ones the inner loops.
    """
    _scope(op, build, op.operator.expression, op.operator.reduction)


def _scope(
    op: CanonicalNode[CanonicalOperator], build: MapFragment, code: str, accumulate: Reduction | None = None
) -> None:
    """Add the scope; what is reduced changes fastest, so that each result is complete at once."""
    operands, result = op.operands(), op.output()
    nest = op.operator.loop_nest(operands, result)
    assert nest is not None
    order = sorted(nest.loops, key=lambda name: nest.loops[name].kind is not LoopKind.PARALLEL)
    named = zip(operand_names(len(operands)), operands, nest.reads, strict=True)
    build.map(
        "",
        loops={name: nest.loops[name].extent for name in order},
        reads={name: (tensor, _known(indices)) for name, tensor, indices in named},
        write=(result, _known(nest.write)),
        code=code,
        accumulate=accumulate,
    )


def _known(indices: Sequence[Index]) -> Sequence[str]:
    assert None not in indices
    return cast("Sequence[str]", indices)
