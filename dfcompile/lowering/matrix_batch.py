"""Map scopes of operators on the matrices of a batch: in each scope a task per matrix."""

from collections.abc import Mapping
from typing import TypeAlias

from dfcompile.lowering.map_fragment import Access, Loops, MapFragment
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor

Element: TypeAlias = tuple[Tensor, *tuple[str, ...]]  # of an array, at the indices behind those of the batch


class MatrixBatch:
    """Adds scopes to a fragment.

    Attributes:
        spatial: loops over the matrices, with their extents.
    """

    def __init__(self, build: MapFragment, matrices: Tensor) -> None:
        self._build = build
        self.spatial = {f"n{axis}": extent for axis, extent in enumerate(matrices.shape[:-2])}

    def array(self, name: str, *extents: int, dtype: str | None = None) -> Tensor:
        """Add an array that has so many elements per matrix."""
        return self._build.array(name, (*self.spatial.values(), *extents) or (1,), dtype)

    def at(self, tensor: Tensor, *indices: str) -> Access:
        """Return the access of a matrix's element; an array without more dimensions is the same for all."""
        lead = list(self.spatial) if tensor.rank > len(indices) else []
        return tensor, [*lead, *indices] or ["0"]

    def map(
        self,
        step: str,
        loops: Loops,
        reads: Mapping[str, Element],
        write: Element,
        code: str,
        accumulate: Reduction | None = None,
        tables: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Add a scope; see `MapFragment.map`."""
        at, to = {name: self.at(*element) for name, element in reads.items()}, self.at(*write)
        self._build.map(
            step, spatial=self.spatial, loops=loops, reads=at, write=to, code=code, accumulate=accumulate, tables=tables
        )
