"""Accepts or rejects what one of several chips runs: who has which element, recounted from loops alone."""

import math

from dfcompile.canonical_dag import CanonicalDag, Kernel, TensorRole
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.array_shares import elements_missing, iterations_left, layout_of, most_elements
from dfcompile.dfmodel_backend.check.requirements import require, require_close
from dfcompile.dfmodel_backend.check.task_times import TaskPlaces
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.exchange import Exchange, Layout, Partial
from dfcompile.errors import VerificationError


def check_task_share(whole: CanonicalDag, share: CanonicalDag, system: System, mapping: TaskMapping) -> None:
    """Check the lowering of one of several chips, and what they exchange.

    * Every kernel is there, and runs its first iterations of each loop that is split: a part rounded up.
    * Every array has as many elements as the chip that has most of it makes, or needs.
    * A kernel reads what another one makes only where every chip needs what it has. Else it reads an array that nobody
      on the chip makes, in a later configuration; what a chip does not have is exchanged.
    * A configuration exchanges what its kernels make, for as long as all these exchanges take.

    Args:
        whole: the lowering of all chips together.
        share: that of the chip with most of it.
        system: with the chips in use.
        mapping: of the share.

    Raises:
        VerificationError: naming the kernel or the array, found against expected.
    """
    _Shares(whole, share, system, mapping).check()


class _Shares:
    def __init__(self, whole: CanonicalDag, share: CanonicalDag, system: System, mapping: TaskMapping) -> None:
        self._whole = whole
        self._share = {kernel.name: kernel for kernel in share.kernels}
        self._sizes = {tensor.name: tensor.elements for tensor in share.tensors}
        self._mapping = mapping
        self._chips = tuple(dimension.chips for dimension in system.network.dimensions)
        self._choices = dict(mapping.sharding)
        self._arrays = {tensor.name: tensor for tensor in whole.tensors}
        self._made = {name for kernel in share.kernels for name in kernel.outputs}
        self._place = TaskPlaces(share, mapping).place

    def check(self) -> None:
        mapping, exchanges = self._mapping, self._mapping.exchanges
        require("chips", mapping.chips, math.prod(self._chips))
        require("kernels", sorted(self._share), sorted(kernel.name for kernel in self._whole.kernels))
        for kernel in self._whole.kernels:
            self._check_kernel(kernel)
        makers = {name: kernel for kernel in self._whole.kernels for name in kernel.outputs}
        for array, maker in makers.items():
            self._check_array(array, maker)
        for place, configuration in enumerate(mapping.configurations):
            expected = sum(one.time_ns for one in exchanges if self._place[one.source] == place)
            require_close(f"configuration {place}: network", configuration.network_ns, expected)
        require("bytes of messages", mapping.network_bytes, sum(one.message_bytes for one in exchanges))
        require("bytes moved", mapping.moved_bytes, sum(one.moved_bytes for one in exchanges))

    def _layout(self, kernel: Kernel, place: int, *, is_result: bool) -> Layout:
        return layout_of(kernel, place, self._choices[kernel.name], self._chips, is_result=is_result)

    def _check_kernel(self, kernel: Kernel) -> None:
        share, where = self._share[kernel.name], f"kernel {kernel.name!r}"
        require(f"{where}: expansion", share.expansion, kernel.expansion)
        kept = {loop.name: loop.extent for loop in kernel.loops}
        for number, left in iterations_left(kernel, self._choices[kernel.name], self._chips):
            kept[kernel.loops[number].name] = left
        found = {loop.name: loop.extent for loop in share.loops if loop.name in kept}
        require(f"{where}: iterations", found, {name: left for name, left in kept.items() if left > 1 or name in found})
        for arrays, parts, is_result in ((kernel.inputs, share.inputs, False), (kernel.outputs, share.outputs, True)):
            for place, (array, part) in enumerate(zip(arrays, parts, strict=True)):
                most = most_elements(self._layout(kernel, place, is_result=is_result), self._arrays[array].elements)
                require(f"{where}: elements of {array!r} on the chip with most of it", self._sizes[part], most)

    def _check_array(self, array: str, maker: Kernel) -> None:
        tensor, given = self._arrays[array], self._layout(maker, maker.outputs.index(array), is_result=True)
        partial = [count for held, count in zip(given, self._chips, strict=True) if isinstance(held, Partial)]
        combined = (math.prod(partial) - 1) * tensor.elements  # values that move at least until they are one
        moved = combined if tensor.role is TensorRole.OUTPUT else 0
        for reader in self._whole.kernels:
            for at in (at for at, name in enumerate(reader.inputs) if name == array):
                needed = self._layout(reader, at, is_result=False)
                missing = combined if partial else self._missing(array, given, needed)
                is_same = not partial and not missing and not self._missing(array, needed, given)
                self._check_read(array, maker, reader, at, is_same=is_same)
                is_listed = any(reader.name in one.readers for one in self._exchanges(array))
                if missing and not is_listed and not self._is_left_whole(array, given, needed):
                    raise VerificationError(
                        f"kernel {reader.name!r}: {array!r} is not exchanged, and {missing} elements miss"
                    )
                moved = max(moved, missing)
        found, least = sum(one.moved_bytes for one in self._exchanges(array)), moved * tensor.element_bytes
        if found < least:
            raise VerificationError(f"array {array!r}: {found} bytes are exchanged against at least {least}")

    def _exchanges(self, array: str) -> list[Exchange]:
        return [one for one in self._mapping.exchanges if one.tensor.partition("@")[0] == array]

    def _missing(self, array: str, given: Layout, needed: Layout) -> int:
        return elements_missing(given, needed, self._arrays[array].elements, self._chips)

    def _check_read(self, array: str, maker: Kernel, reader: Kernel, at: int, *, is_same: bool) -> None:
        part = self._share[reader.name].inputs[at]
        where = f"kernel {reader.name!r}: reads {array!r}"
        if is_same and part in self._made:
            return
        if is_same:
            raise VerificationError(f"{where} from an exchange against as {maker.name!r} leaves it")
        if part in self._made:
            raise VerificationError(f"{where} as {maker.name!r} leaves it, which is not what every chip needs")
        before, after = self._place[maker.name], self._place[reader.name]
        if before >= after:
            raise VerificationError(
                f"{where}, which is exchanged, in configuration {after} against one after {before} of {maker.name!r}"
            )

    def _is_left_whole(self, array: str, given: Layout, needed: Layout) -> bool:
        """Return whether an exchange for other readers leaves every chip with what is needed, among what others had."""
        for one in self._exchanges(array):
            left = tuple(
                None if isinstance(held, Partial) or (before and after is None) else held
                for held, before, after in zip(given, *one.layouts, strict=True)
            )
            if not self._missing(array, left, needed):
                return True
        return False
