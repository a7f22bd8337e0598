"""What SRAM holds while a configuration runs, spatial block by spatial block."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, Int64


class Holding(Struct, frozen=True, eq=False):
    """What it takes to hold stores, and the DRAM traffic that this saves; bytes.

    Attributes:
        first: spatial block that first touches each store, shape [stores].
        last: the one that touches it last, shape [stores].
        needed: to hold all of it from first to last, shape [stores].
        saved: by that, shape [stores].
        row: store of each pair of a store and a block that reads it, shape [pairs].
        block: block of each pair, shape [pairs].
        part: what the tasks of the block read, each element once, shape [pairs].
        read: the same, each time that an element is read, shape [pairs].
        shared: of that what is not read again if tasks share streams, shape [pairs].
        window: SRAM that sharing takes, shape [pairs].
    """

    first: Int64
    last: Int64
    needed: Int64
    saved: Int64
    row: Int64
    block: Int64
    part: Int64
    read: Int64
    shared: Int64
    window: Int64


class Held(Struct, frozen=True, eq=False):
    """What SRAM holds.

    Attributes:
        whole: whether it holds each store, shape [stores].
        saved_by_parts: DRAM bytes that are not read because parts of a store are held, shape [stores].
        saved_by_sharing: the same because tasks share streams, shape [stores].
        shared: blocks in which tasks share streams of each store, ascending.
        blocks: whose parts of each store it holds, ascending.
        sram_bytes: of the block with most of them, FIFOs included.
    """

    whole: Bool
    saved_by_parts: Int64
    saved_by_sharing: Int64
    shared: tuple[tuple[int, ...], ...]
    blocks: tuple[tuple[int, ...], ...]
    sram_bytes: int


def hold(stores: Holding, fifo_bytes: Int64, room: float) -> Held:
    """Choose what SRAM holds: first what saves most DRAM traffic per byte and block, as long as there is room.

    Streams are shared before that: what the last reader has yet to read is little.

    A store whose parts save as much as the whole is held in parts, which needs less. What does not fit whole may still
    fit in parts, block by block.

    Args:
        stores: the choice.
        fifo_bytes: taken by the FIFOs of each spatial block, shape [blocks].
        room: bytes of SRAM.
    """
    return _Chosen(stores, fifo_bytes, room).run()


class _Chosen:
    def __init__(self, stores: Holding, fifo_bytes: Int64, room: float) -> None:
        self._stores = stores
        self._load = fifo_bytes.copy()
        self._room = room
        count = len(stores.needed)
        self._whole = np.zeros(count, dtype=np.bool_)
        self._taken = np.zeros(len(stores.row), dtype=np.bool_)
        self._is_shared = self._share()
        read = stores.read - np.where(self._is_shared, stores.shared, 0)
        self._saved = read - stores.part
        self._part_saves = _sums(stores.row, np.maximum(self._saved, 0), count)
        self._whole_saves = stores.saved - _sums(stores.row, stores.read - read, count)

    def _share(self) -> Bool:
        """Share streams where that saves most per byte, block by block."""
        stores = self._stores
        shared = np.zeros(len(stores.row), dtype=np.bool_)
        wanted = np.flatnonzero(stores.shared > 0)
        for pair in wanted[
            np.lexsort((wanted, -stores.shared[wanted] / np.maximum(stores.window[wanted], 1)))
        ].tolist():
            block, window = int(stores.block[pair]), int(stores.window[pair])
            if int(self._load[block]) + window <= self._room:
                self._load[block] += window
                shared[pair] = True
        return shared

    def run(self) -> Held:
        stores, count = self._stores, len(self._whole)
        in_parts = (self._part_saves > 0) & (self._part_saves >= self._whole_saves)
        worth = in_parts | (self._whole_saves > 0)
        cost = np.where(
            in_parts, _sums(stores.row, stores.part, count), stores.needed * (stores.last - stores.first + 1)
        )
        saves = np.where(in_parts, self._part_saves, self._whole_saves)
        wanted = np.flatnonzero(worth)
        order = wanted[np.lexsort((wanted, -saves[wanted] / np.maximum(cost[wanted], 1)))]
        pairs = np.argsort(stores.row, kind="stable")
        starts = np.searchsorted(stores.row[pairs], np.arange(count + 1))
        for row in order.tolist():
            own = pairs[starts[row] : starts[row + 1]]
            if in_parts[row] or not self._take_whole(row, own):
                self._take_parts(own)
        shared = self._is_shared
        return Held(
            whole=self._whole,
            saved_by_parts=_sums(stores.row[self._taken], (stores.read - stores.part)[self._taken], count),
            saved_by_sharing=_sums(stores.row[shared], stores.shared[shared], count),
            shared=self._blocks(shared),
            blocks=self._blocks(self._taken),
            sram_bytes=int(self._load.max(initial=0)),
        )

    def _blocks(self, which: Bool) -> tuple[tuple[int, ...], ...]:
        """Return the blocks of some pairs, store by store."""
        blocks: list[list[int]] = [[] for _ in self._whole]
        for row, block in zip(self._stores.row[which].tolist(), self._stores.block[which].tolist(), strict=True):
            blocks[row].append(block)
        return tuple(map(tuple, blocks))

    def _take_whole(self, row: int, pairs: Int64) -> bool:
        """Hold a store from first to last block, if there is room; then nothing of it is streamed."""
        stores = self._stores
        streaming = pairs[self._is_shared[pairs]]
        load = self._load.copy()
        load[stores.block[streaming]] -= stores.window[streaming]
        blocks = slice(int(stores.first[row]), int(stores.last[row]) + 1)
        if int(load[blocks].max(initial=0)) + int(stores.needed[row]) > self._room:
            return False
        load[blocks] += stores.needed[row]
        self._load = load
        self._is_shared[streaming] = False
        self._whole[row] = True
        return True

    def _take_parts(self, pairs: Int64) -> None:
        stores = self._stores
        blocks = stores.block[pairs]
        more = stores.part[pairs] - np.where(self._is_shared[pairs], stores.window[pairs], 0)
        fits = (self._saved[pairs] > 0) & (self._load[blocks] + more <= self._room)
        self._load[blocks[fits]] += more[fits]
        self._is_shared[pairs[fits]] = False
        self._taken[pairs[fits]] = True


def _sums(row: Int64, values: Int64, count: int) -> Int64:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, row, values)
    return sums
