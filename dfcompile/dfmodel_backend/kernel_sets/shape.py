"""What may be fused, whatever it costs: precedence of kernels, and which of them each configuration may hold."""

from collections.abc import Iterator

from msgspec import Struct

from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets, joined, list_down_sets, topological_orders


class FusionShape(Struct, frozen=True):
    """Kernels are numbered; sets of them are bit masks.

    Attributes:
        predecessors: of each kernel.
        allowed: of each configuration, in order of execution, the kernels that may be in it.
        most_kernels: of a configuration.
        stages: of a pipeline that follow each other, each with all these configurations.
        forward: kernels of the first pass where two passes take separate halves of the configurations, else 0 [ko24].
        backward: kernels of the second pass there; a kernel of neither may be in any configuration.
    """

    predecessors: tuple[int, ...]
    allowed: tuple[int, ...]
    most_kernels: int
    stages: int = 1
    forward: int = 0
    backward: int = 0

    @property
    def every_kernel(self) -> int:
        """Set of all kernels."""
        return (1 << len(self.predecessors)) - 1

    @property
    def is_unlimited(self) -> bool:
        """Whether kernels may be in any configuration, and there is one for each of them."""
        return len(self.allowed) >= len(self.predecessors) and set(self.allowed) <= {self.every_kernel}

    def lattice(self, most: int) -> DownSets | None:
        """Return the down-sets that a chain may visit, or None if there are more than ``most``.

        Where two passes take separate halves, no configuration starts or ends with the first pass unfinished and the
        second begun.
        """
        return list_down_sets(self._ordered, most)

    def intervals(self) -> DownSets:
        """Return the prefixes of a few topological orders: some of the down-sets, few whatever the graph."""
        return joined(topological_orders(self._ordered))

    @property
    def _ordered(self) -> tuple[int, ...]:
        return tuple(
            needed | self.forward if self.backward >> kernel & 1 else needed
            for kernel, needed in enumerate(self.predecessors)
        )

    def middle_pairs(self, lattice: DownSets) -> Iterator[tuple[int, int]]:
        """Yield pairs whose kernels are of both passes: of an odd number of configurations the middle is for both."""
        if not self.forward or len(self.allowed) % 2 == 0:
            return
        late = [after for after in lattice if after & self.forward == self.forward and after & self.backward]
        for before in lattice:
            if not before & self.backward and before & self.forward != self.forward:
                for after in late:
                    if before & ~after == 0 and (after ^ before).bit_count() <= self.most_kernels:
                        yield before, after
