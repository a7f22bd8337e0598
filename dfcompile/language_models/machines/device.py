"""A device: rates per number format, memories with their bandwidths, links; what is not known is said to be so."""

import math
from collections.abc import Mapping

from msgspec import Struct, field

from dfcompile.errors import UserError


class MemoryLevel(Struct, frozen=True):
    """A memory on the chip.

    Attributes:
        name: of the level, such as L2.
        capacity_bytes: of one instance.
        bytes_per_s: of all instances together; infinite where it is not known.
        shared_by: cores that share an instance; 0: all.
        pj_per_byte: energy; 0 where it is not known.
        usable: share of the capacity that tiles may fill: all of a scratchpad, less of a cache.
    """

    name: str
    capacity_bytes: int
    bytes_per_s: float = math.inf
    shared_by: int = 0
    pj_per_byte: float = 0.0
    usable: float = 1.0

    @property
    def usable_bytes(self) -> int:
        """Of one instance, for tiles."""
        return int(self.capacity_bytes * self.usable)


class LinkLevel(Struct, frozen=True):
    """One dimension of the network, inner ones first: ``kind`` is that of a topology's dimension, r, sw or fc."""

    kind: str
    chips: int
    bytes_per_s: float


class Device(Struct, frozen=True):
    """One chip, and the network between such chips.

    Attributes:
        name: of the device.
        macs_per_s: multiply-accumulates per second, by number format, or by a pair of them such as ``int4_bf16``.
        bytes_per_s: of its memory.
        capacity_bytes: of its memory; 0 where it is not known.
        levels: memories on the chip, the outermost first.
        cores: that share the work.
        frequency_hz: for figures in cycles; 0 where it is not known.
        granule: rows, columns of the first operand and columns of the second that its arrays take at once.
        compute_efficiency: of the rates that are attained at most.
        memory_efficiency: of the bandwidth that is attained at most.
        launch_s: of every kernel.
        offload: a memory beside the chip's own that holds a part of caches, behind a link of its own; None: none.
        vector_per_s: elements per second of the vector unit; 0 where it is not known.
        links: between chips.
        link_latency_s: of a hop.
        tdp_w: most power; 0 where it is not known.
        idle_w: power without work.
        pj_per_mac: energy by number format.
        pj_per_byte: energy of its memory.
        link_pj_per_byte: energy of links.
        vector_pj: energy of an element in the vector unit.
        usd: price of a chip; 0 where it is not known.
        notes: what was assumed, with its source.
    """

    name: str
    macs_per_s: Mapping[str, float]
    bytes_per_s: float
    capacity_bytes: int = 0
    levels: tuple[MemoryLevel, ...] = ()
    cores: int = 1
    frequency_hz: float = 0.0
    granule: tuple[int, int, int] = (1, 1, 1)
    compute_efficiency: float = 1.0
    memory_efficiency: float = 1.0
    launch_s: float = 0.0
    offload: MemoryLevel | None = None
    vector_per_s: float = 0.0
    links: tuple[LinkLevel, ...] = ()
    link_latency_s: float = 0.0
    tdp_w: float = 0.0
    idle_w: float = 0.0
    pj_per_mac: Mapping[str, float] = field(default_factory=dict)
    pj_per_byte: float = 0.0
    link_pj_per_byte: float = 0.0
    vector_pj: float = 0.0
    usd: float = 0.0
    notes: tuple[str, ...] = ()

    def rate(self, form: str) -> float:
        """Return the multiply-accumulates per second in a number format.

        Raises:
            UserError: the device does not say; a rate is never guessed.
        """
        if form not in self.macs_per_s:
            found = f"found no rate for {form} against {', '.join(self.macs_per_s)}"
            raise UserError(f"system {self.name!r}: {found} (--dtype a=… says what is multiplied)")
        return self.macs_per_s[form]

    def mac_pj(self, form: str) -> float:
        """Return the energy of a multiply-accumulate; of a pair of formats that is not said that of the dearer one."""
        if form in self.pj_per_mac:
            return self.pj_per_mac[form]
        return max(self.pj_per_mac.get(part, 0.0) for part in form.split("_"))

    def instances(self, level: MemoryLevel) -> int:
        """Return how many there are of a memory on the chip."""
        return self.cores // level.shared_by if level.shared_by else 1

    @property
    def chips(self) -> int:
        """Chips of the largest machine."""
        return math.prod(link.chips for link in self.links)

    @property
    def cache_bytes(self) -> int:
        """What tiles may fill of the outermost memory on the chip; 0 where none is known."""
        return self.levels[0].usable_bytes if self.levels else 0
