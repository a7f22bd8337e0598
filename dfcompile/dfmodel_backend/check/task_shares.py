"""Accepts or rejects what one of several chips runs: who has which element, recounted from loops alone."""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import product

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, Digit, Kernel, LoopKind, TensorRole
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.requirements import require, require_close
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.exchange import Exchange
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError

_NOT_SPLIT = -1


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


class _Holding(Struct, frozen=True):
    """Which elements of an array each chip has, or needs.

    Attributes:
        parts: stride and extent of each digit that is divided, and along which dimensions, in blocks of how many.
        partial: dimensions along which chips have partial results.
    """

    parts: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
    partial: tuple[int, ...]

    @property
    def granule(self) -> int:
        """Elements in a row that lie on the same chips, whatever else divides the array."""
        steps = [stride * block for stride, _, blocks in self.parts for _, block in blocks]
        return math.gcd(*steps, *(stride * extent for stride, extent, _ in self.parts))

    def on(self, chip: Sequence[int], offsets: Int64) -> Bool:
        """Return whether a chip has the element at each offset."""
        own = np.ones(len(offsets), dtype=np.bool_)
        for stride, extent, blocks in self.parts:
            place = offsets // stride % extent
            for dimension, block in blocks:
                own &= place // block == chip[dimension]
                place = place % block
        return own


class _Shares:
    def __init__(self, whole: CanonicalDag, share: CanonicalDag, system: System, mapping: TaskMapping) -> None:
        self._whole = whole
        self._share = {kernel.name: kernel for kernel in share.kernels}
        self._sizes = {tensor.name: tensor.elements for tensor in share.tensors}
        self._mapping = mapping
        self._counts = [dimension.chips for dimension in system.network.dimensions]
        self._choices = dict(mapping.sharding)
        self._arrays = {tensor.name: tensor for tensor in whole.tensors}
        self._made = {name for kernel in share.kernels for name in kernel.outputs}
        self._place = _configurations(share, mapping)

    def check(self) -> None:
        require("chips", self._mapping.chips, math.prod(self._counts))
        require("kernels", sorted(self._share), sorted(kernel.name for kernel in self._whole.kernels))
        for kernel in self._whole.kernels:
            self._check_kernel(kernel)
        makers = {name: kernel for kernel in self._whole.kernels for name in kernel.outputs}
        for array, maker in makers.items():
            self._check_array(array, maker)
        self._check_network()

    # -- kernels

    def _check_kernel(self, kernel: Kernel) -> None:
        share, where = self._share[kernel.name], f"kernel {kernel.name!r}"
        require(f"{where}: expansion", share.expansion, kernel.expansion)
        kept = {loop.name: loop.extent for loop in kernel.loops}
        for number, blocks in self._blocks(kernel):
            kept[kernel.loops[number].name] = blocks[-1][1]
        found = {loop.name: loop.extent for loop in share.loops if loop.name in kept}
        require(f"{where}: iterations", found, {name: left for name, left in kept.items() if left > 1 or name in found})
        ends = [(kernel.inputs, share.inputs, False), (kernel.outputs, share.outputs, True)]
        for arrays, shared, is_result in ends:
            for place, (array, part) in enumerate(zip(arrays, shared, strict=True)):
                held = self._held(kernel, place, is_result=is_result)
                offsets, granule = self._offsets(array, held)
                most = int(held.on([0] * len(self._counts), offsets).sum()) * granule
                require(f"{where}: elements of {array!r} on the chip with most of it", self._sizes[part], most)

    def _blocks(self, kernel: Kernel) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
        """Yield each loop that is split, with the dimensions that divide it, outermost first, and blocks of each."""
        choice = self._choices[kernel.name]
        for number in sorted(set(choice) - {_NOT_SPLIT}):
            left, blocks = kernel.loops[number].extent, []
            for dimension in reversed(range(len(choice))):
                if choice[dimension] == number:
                    left = -(-left // self._counts[dimension])
                    blocks.append((dimension, left))
            yield number, tuple(blocks)

    def _held(self, kernel: Kernel, place: int, *, is_result: bool) -> _Holding:
        parts, partial = [], []
        for number, blocks in self._blocks(kernel):
            loop = kernel.loops[number]
            digit: Digit | None = (loop.outputs if is_result else loop.inputs)[place]
            if digit is not None:
                parts.append((digit.stride, loop.extent, blocks))
            elif is_result and loop.kind is not LoopKind.PARALLEL:
                partial += [dimension for dimension, _ in blocks]
        return _Holding(tuple(parts), tuple(partial))

    def _offsets(self, array: str, *held: _Holding) -> tuple[Int64, int]:
        elements = self._arrays[array].elements
        granule = math.gcd(elements, *(one.granule for one in held))
        return np.arange(0, elements, granule, dtype=np.int64), granule

    # -- arrays between kernels

    def _check_array(self, array: str, maker: Kernel) -> None:
        place = maker.outputs.index(array)
        given = self._held(maker, place, is_result=True)
        moved = 0
        for reader in self._whole.kernels:
            for at, name in enumerate(reader.inputs):
                if name == array:
                    needed = self._held(reader, at, is_result=False)
                    is_same, missing = self._compared(array, given, needed)
                    self._check_read(array, maker, reader, at, is_same=is_same)
                    is_listed = any(reader.name in one.readers for one in self._exchanges(array))
                    if missing and not is_listed and not self._is_left_whole(array, given, needed):
                        raise VerificationError(
                            f"kernel {reader.name!r}: {array!r} is not exchanged, and {missing} elements miss"
                        )
                    moved = max(moved, missing)
        if self._arrays[array].role is TensorRole.OUTPUT and given.partial:
            moved = max(moved, self._combined(array, given))
        found, least = sum(one.moved_bytes for one in self._exchanges(array)), moved * self._arrays[array].element_bytes
        if found < least:
            raise VerificationError(f"array {array!r}: {found} bytes are exchanged against at least {least}")

    def _exchanges(self, array: str) -> list[Exchange]:
        return [one for one in self._mapping.exchanges if one.tensor.partition("@")[0] == array]

    def _compared(self, array: str, given: _Holding, needed: _Holding) -> tuple[bool, int]:
        """Return whether every chip needs what it has, and how many elements must move at least."""
        if given.partial:
            return False, self._combined(array, given)
        if given == needed:
            return True, 0
        offsets, granule = self._offsets(array, given, needed)
        is_same, missing = True, 0
        for chip in product(*(range(count) for count in self._counts)):
            has, needs = given.on(chip, offsets), needed.on(chip, offsets)
            is_same &= bool((has == needs).all())
            missing += int((needs & ~has).sum()) * granule
        return is_same, missing

    def _combined(self, array: str, given: _Holding) -> int:
        """Return how many values must move at least until partial results are one."""
        group = math.prod(self._counts[dimension] for dimension in given.partial)
        return (group - 1) * self._arrays[array].elements

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

    def _is_left_whole(self, array: str, given: _Holding, needed: _Holding) -> bool:
        """Return whether an exchange for other readers leaves every chip with what is needed, among what others had."""
        offsets, _ = self._offsets(array, given, needed)
        chips = tuple(product(*map(range, self._counts)))
        return any(
            all((self._together(given, chip, along, offsets) >= needed.on(chip, offsets)).all() for chip in chips)
            for along in self._gathered(array)
        )

    def _gathered(self, array: str) -> Iterator[frozenset[int]]:
        """Yield the dimensions along which each exchange of an array makes it whole."""
        for one in self._exchanges(array):
            ends = zip(*one.layouts, strict=True)
            yield frozenset(at for at, (before, after) in enumerate(ends) if after is None and before is not None)

    def _together(self, held: _Holding, chip: Sequence[int], along: Collection[int], offsets: Int64) -> Bool:
        """Return what the chips have together that differ from one along some dimensions alone."""
        group = product(*(range(n) if at in along else [chip[at]] for at, n in enumerate(self._counts)))
        return np.asarray(np.any([held.on(one, offsets) for one in group], axis=0))

    # -- times

    def _check_network(self) -> None:
        mapping = self._mapping
        for place, configuration in enumerate(mapping.configurations):
            expected = sum(one.time_ns for one in mapping.exchanges if self._place[one.source] == place)
            require_close(f"configuration {place}: network", configuration.network_ns, expected)
        require("bytes of messages", mapping.network_bytes, sum(one.message_bytes for one in mapping.exchanges))
        require("bytes moved", mapping.moved_bytes, sum(one.moved_bytes for one in mapping.exchanges))


def _configurations(share: CanonicalDag, mapping: TaskMapping) -> dict[str, int]:
    """Return the configuration of each kernel, by its tasks."""
    found = {}
    for place, configuration in enumerate(mapping.configurations):
        nodes = configuration.part.node[configuration.part.dag.is_computational]
        for scope in distinct(share.node_scope[nodes]).tolist():
            kernel = share.scopes[scope].kernel
            if kernel >= 0:
                found[share.kernels[kernel].name] = place
    return found
