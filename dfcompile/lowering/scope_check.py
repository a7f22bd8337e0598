"""Checks what an expansion of a third party builds before it is built: shapes, indices, results."""

from collections.abc import Mapping, Sequence
from math import prod

from dfcompile.errors import UserError, VerificationError
from dfcompile.lowering.alternatives.outline import OutlineFragment, affine
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.map_fragment import Access
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor
from dfcompile.plugins import faults_of


def check_scopes(op: CanonicalNode[CanonicalOperator], expansion: Expansion) -> OutlineFragment:
    """Check what an expansion builds of an operator, and return its outline.

    Raises:
        PluginError: the expansion is a third party's, and it raised or what it builds is wrong.
        VerificationError: what it builds is wrong, and it is ours: whoever made the operator made it wrong.
    """
    outline = CheckedOutline(op)
    expansion.apply(op, outline)
    with faults_of("expansion", expansion.origin):
        outline.check_results()
    return outline


class CheckedOutline(OutlineFragment):
    """An outline that looks at every index of every scope; ours are proved by their tests instead."""

    def __init__(self, op: CanonicalNode[CanonicalOperator]) -> None:
        super().__init__(op)
        self._op_name = op.name
        self._results = tuple(tensor for tensor in op.outputs if tensor is not None)
        self._written: dict[str, int] = {}  # elements at most
        self._known = {tensor.name for tensor in op.operands()}

    def map(
        self,
        step: str,
        *,
        loops: Mapping[str, int],
        reads: Mapping[str, Access],
        write: Access,
        code: str,
        spatial: Mapping[str, int] | None = None,
        tables: Mapping[str, Tensor] | None = None,
        accumulate: Reduction | None = None,
        after_write: bool = False,
        scattered: bool = False,
    ) -> None:
        """Check a map scope and remember it; see `MapFragment.map`.

        Raises:
            VerificationError: an index leaves its array, a loop is empty, or an array is read that nothing has written.
        """
        scope = f"{self._op_name}.{step}" if step else self._op_name
        extents = {**(spatial or {}), **loops}
        if any(extent < 1 for extent in extents.values()):
            raise VerificationError(f"scope {scope}: empty loop in {extents}")
        for read in reads.values():
            _check_indices(scope, *read, extents)
        if not scattered:
            _check_indices(scope, *write, extents)
        for tensor in (*(tensor for tensor, _ in reads.values()), *(tables or {}).values()):
            if tensor.name not in self._known and tensor.name not in self._written:
                raise VerificationError(f"scope {scope}: reads {tensor.name!r}, which nothing has written")
            if tensor.name == write[0].name:
                raise VerificationError(f"scope {scope}: reads {tensor.name!r}, which it writes")
        target = write[0]
        elements = 0 if scattered else target.elements if accumulate is not None else _distinct(write, extents)
        self._written[target.name] = self._written.get(target.name, 0) + elements
        super().map(
            step, loops=loops, reads=reads, write=write, code=code, spatial=spatial, tables=tables,
            accumulate=accumulate, after_write=after_write,
            scattered=scattered,
        )  # fmt: skip

    def check_results(self) -> None:
        """Check that the results are written.

        Raises:
            VerificationError: one is not, or not all of its elements can be.
        """
        for tensor in self._results:
            elements = self._written.get(tensor.name, 0)
            if elements < tensor.elements:
                raise VerificationError(
                    f"operator {self._op_name!r}: {elements} elements written of result {tensor.name!r} "
                    f"against {tensor.elements}"
                )


def _check_indices(scope: str, tensor: Tensor, indices: Sequence[str], extents: Mapping[str, int]) -> None:
    shape = list(tensor.shape)
    if len(indices) != len(shape) and not (not indices and tensor.elements == 1):
        raise VerificationError(f"scope {scope}: {len(indices)} indices of {tensor.name!r} against its shape {shape}")
    for index, size in zip(indices, shape, strict=False):
        terms = _terms(scope, index)
        unknown = [name for name in terms if name and name not in extents]
        if unknown:
            raise VerificationError(f"scope {scope}: index {index!r}: no loop {unknown[0]!r} among {list(extents)}")
        ends = [terms[name] * (extents[name] - 1) for name in terms if name]
        least = terms.get("", 0) + sum(end for end in ends if end < 0)
        largest = terms.get("", 0) + sum(end for end in ends if end > 0)
        if least < 0 or largest >= size:
            raise VerificationError(
                f"scope {scope}: index {index!r} of {tensor.name!r} from {least} to {largest} against 0 to {size - 1}"
            )


def _terms(scope: str, index: str) -> Mapping[str, int]:
    try:
        return affine(index)
    except UserError as error:
        raise VerificationError(f"scope {scope}: index {index!r} against an affine function of the loops") from error


def _distinct(write: Access, extents: Mapping[str, int]) -> int:
    """Return how many elements a scope writes at most: iterations of the loops that its indices depend on."""
    tensor, indices = write
    used = {name for index in indices for name in affine(index) if name}
    return min(prod(extents[name] for name in used), tensor.elements)
