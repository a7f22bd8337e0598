"""The machine that models compute on: chips and their network, with prices and powers [ko24].

A set-up file says one; a system file says one for chips of any number of cores, with some figures per core.
"""

import math
import sys
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum, unique
from typing import Annotated

from msgspec import Meta, Struct, convert, to_builtins

from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.dfmodel_backend.options import Assumption
from dfcompile.errors import UserError
from dfcompile.options.readers import MOST_CYCLES
from dfcompile.records import replace

# What files of machines may say, as they are read; machines that are made of others are not checked.
Count = Annotated[int, Meta(ge=1, le=10**9)]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
Cycles = Annotated[int, Meta(ge=0, le=MOST_CYCLES)]
NotNegative = Annotated[float, Meta(ge=0, le=sys.float_info.max)]


@unique
class LaneStage(StrEnum):
    """How the kernel that reads a tensor spreads it over its cores."""

    LANE = "lane"  # rows: each of its lanes reads from a PMU of its own
    STAGE = "stage"  # columns: each of its stages does


@unique
class Placement(StrEnum):
    """In which order units of a grid are taken."""

    NONE = ""  # nothing is placed, limits hold
    ROWWISE = "rowwise"
    DIAGONALWISE = "diagonalwise"


class PmuGrid(Struct, frozen=True):
    """Memory units of one chip, and an ``x`` by ``y`` checkerboard of memory and compute units."""

    pmus: int
    pmu_bytes: float
    x: int
    y: int
    placement: Placement


@unique
class Collective(StrEnum):
    """What chips exchange."""

    NONE = "NO_COMMUNICATION"
    ALL_REDUCE = "ALL_REDUCE"
    ALL_TO_ALL = "ALL_TO_ALL"
    ALL_GATHER = "ALL_GATHER"
    ALL_REDUCE_PERIODIC = "ALL_REDUCE_PERIODIC"  # once per batch: gradients
    POINT_TO_POINT = "POINT_TO_POINT"
    BROADCAST = "BROADCAST"


class Dimension(Struct, frozen=True, forbid_unknown_fields=True):
    """One dimension of the network between chips, inner dimensions first."""

    chips: Count
    link_bandwidth_gb_per_s: Positive
    link_power_w_per_gb_per_s: NotNegative = 0.0


class Network(Struct, frozen=True, forbid_unknown_fields=True):
    """The links between chips; ``kind`` names one kind per dimension: r ring, sw switch, fc fully connected."""

    kind: str
    dimensions: tuple[Dimension, ...]
    link_price_usd_per_gb_per_s: NotNegative = 0.0
    switch_price_usd_per_gb_per_s: NotNegative = 0.0
    switch_power_w_per_gb_per_s: NotNegative = 0.0
    link_latency_ns: NotNegative = 0.0


class Link(Struct, frozen=True):
    """One dimension of the topology."""

    shape: str  # name of a kind of dimension: r ring, sw switch, fc fully connected, …
    chips: int  # 0: to be found
    gb_per_s: float
    parallelism: str  # TP, PP, DP or SP; empty for workloads that are not language models
    power_w_per_gb_per_s: float


class Prices(Struct, frozen=True):
    """Unit prices and powers of everything but the links' power, which differs per dimension."""

    accelerator_usd: float
    accelerator_w: float
    dram_usd_per_gb_per_s: float
    dram_w_per_gb_per_s: float
    link_usd_per_gb_per_s: float
    switch_usd_per_gb_per_s: float
    switch_w_per_gb_per_s: float


class Cores(Struct, frozen=True):
    """``cores`` cores of ``lanes_per_core x stages_per_core`` multiply-adders, on one chip."""

    cores: int
    lanes_per_core: int  # systolic width
    stages_per_core: int  # systolic height
    frequency_ghz: float

    @property
    def peak_gflops(self) -> float:
        """Two operations per multiply-adder and cycle."""
        return 2.0 * self.lanes_per_core * self.stages_per_core * self.cores * self.frequency_ghz


class Machine(Cores, frozen=True):
    """The chips and their network."""

    chips: int
    sram_bytes: float  # 0: unlimited
    dram_gb_per_s: float
    dram_bytes: float  # 0: unlimited
    link_latency_ns: float
    domain_chips: int  # high-bandwidth domain, 0: none
    topology: str
    links: tuple[Link, ...]
    prices: Prices
    pmu: PmuGrid | None = None  # None: SRAM is one

    @property
    def network(self) -> Network:
        """Links and switches with their prices and powers."""
        return Network(
            kind=self.topology,
            dimensions=tuple(Dimension(link.chips, link.gb_per_s, link.power_w_per_gb_per_s) for link in self.links),
            link_price_usd_per_gb_per_s=self.prices.link_usd_per_gb_per_s,
            switch_price_usd_per_gb_per_s=self.prices.switch_usd_per_gb_per_s,
            switch_power_w_per_gb_per_s=self.prices.switch_w_per_gb_per_s,
            link_latency_ns=self.link_latency_ns,
        )


UNLIMITED_GB_PER_S = 2.0**100  # no traffic takes time; finite, so that time x bandwidth is the bytes again


class Amount(Struct, frozen=True):
    """A figure of a chip, given for the whole chip or per core."""

    value: float
    per_core: bool = False

    def of(self, cores: int) -> float:
        """Return the figure of a chip with this many cores."""
        return self.value * cores if self.per_core else self.value

    def divided(self, groups: int) -> "Amount":
        """Return the figure of each of equal groups of cores of a chip."""
        return self if self.per_core else replace(self, value=self.value / groups)


class Accelerator(Cores, frozen=True):
    """One chip."""

    sram: Amount  # bytes; 0 means unlimited
    price: Amount  # $
    power: Amount  # W

    @property
    def sram_bytes(self) -> float:
        """SRAM of the chip; 0 means unlimited."""
        return self.sram.of(self.cores)

    @property
    def price_usd(self) -> float:
        """Price of the chip."""
        return self.price.of(self.cores)

    @property
    def power_w(self) -> float:
        """Power of the chip."""
        return self.power.of(self.cores)


class Dram(Struct, frozen=True):
    """DRAM of one chip."""

    bandwidth: Amount  # GB/s, which is bytes per ns; UNLIMITED_GB_PER_S: unlimited
    capacity: Amount  # bytes; 0 means unlimited
    price_usd_per_gb_per_s: float
    power_w_per_gb_per_s: float


class FifoKind(StrEnum):
    """When the two ends of a FIFO see each other: in the same cycle, or through registers alone, a cycle later."""

    PASS_THROUGH = "pass-through"  # noqa: S105  # no password
    REGISTERED = "registered"


class OnChipStreams(Struct, frozen=True, forbid_unknown_fields=True):
    """The FIFOs from core to core.

    Attributes:
        fifo: their kind.
        latency_cycles: of the link that each is on, there and back, beside what its kind takes.
        pipeline_cycles: of the tasks that write to them, or to memory.
        operator_pipeline_cycles: the same of tasks of some types of operators, by type.
        ports: edges that a task reads in a cycle at most, and that it writes; without limit by default.
    """

    fifo: FifoKind = FifoKind.PASS_THROUGH
    latency_cycles: Cycles = 0
    pipeline_cycles: Cycles = 0
    operator_pipeline_cycles: dict[str, Cycles] = {}
    ports: Annotated[int, Meta(ge=1, le=MOST_CYCLES)] | None = None

    @property
    def hardware(self) -> Hardware:
        """What FIFOs and tasks take."""
        hop_cycles = self.latency_cycles + (self.fifo is FifoKind.REGISTERED)
        others = self.operator_pipeline_cycles.items()
        pipelines = sorted((op, cycles) for op, cycles in others if cycles != self.pipeline_cycles)
        return Hardware(hop_cycles, self.pipeline_cycles, self.ports, tuple(pipelines))

    def others(self, parts: Mapping[str, int | str]) -> tuple[tuple[str, Hardware], ...]:
        """Return machines that differ in one part each, then in all of several, by what differs.

        >>> [change for change, _ in OnChipStreams().others({"fifo": "registered", "ports": 2})]
        ['fifo=registered', 'ports=2', 'together']
        """

        def changed(names: Collection[str]) -> Hardware:
            fields = {name if name in self.__struct_fields__ else f"{name}_cycles": parts[name] for name in names}
            of_all = {"operator_pipeline_cycles": dict[str, int]()} if "pipeline" in names else {}
            return convert({**to_builtins(self), **of_all, **fields}, OnChipStreams).hardware

        found = [(f"{name}={value}", changed([name])) for name, value in parts.items()]
        return (*found, *([("together", changed(parts))] if len(parts) > 1 else []))


ONE_CHIP = Network("none", ())


class System(Struct, frozen=True):
    """A machine of ``chips`` equal chips."""

    name: str
    chips: int
    accelerator: Accelerator
    dram: Dram
    network: Network
    sources: tuple[Assumption, ...]  # where each figure comes from
    warnings: tuple[str, ...] = ()  # figures that no machine has
    streams: OnChipStreams = OnChipStreams()

    @property
    def dram_gb_per_s(self) -> float:
        """DRAM bandwidth of one chip, in bytes per ns."""
        return self.dram.bandwidth.of(self.accelerator.cores)

    @property
    def is_dram_unlimited(self) -> bool:
        """Whether DRAM traffic takes no time."""
        return self.dram.bandwidth.value >= UNLIMITED_GB_PER_S

    @property
    def dram_capacity_bytes(self) -> float:
        """DRAM capacity of one chip; 0 means unlimited."""
        return self.dram.capacity.of(self.accelerator.cores)

    @property
    def machine(self) -> Machine:
        """The machine of so many cores and chips; all chips together are one tensor parallel group."""
        chip, dram, network = self.accelerator, self.dram, self.network
        return Machine(
            chips=self.chips,
            cores=chip.cores,
            lanes_per_core=chip.lanes_per_core,
            stages_per_core=chip.stages_per_core,
            frequency_ghz=chip.frequency_ghz,
            sram_bytes=chip.sram_bytes,
            dram_gb_per_s=self.dram_gb_per_s,
            dram_bytes=self.dram_capacity_bytes,
            link_latency_ns=network.link_latency_ns,
            domain_chips=0,
            topology=network.kind,
            links=tuple(
                Link(kind, one.chips, one.link_bandwidth_gb_per_s, "TP", one.link_power_w_per_gb_per_s)
                for kind, one in zip(network.kind.split("_"), network.dimensions, strict=bool(network.dimensions))
            ),
            prices=Prices(
                accelerator_usd=chip.price_usd,
                accelerator_w=chip.power_w,
                dram_usd_per_gb_per_s=dram.price_usd_per_gb_per_s,
                dram_w_per_gb_per_s=dram.power_w_per_gb_per_s,
                link_usd_per_gb_per_s=network.link_price_usd_per_gb_per_s,
                switch_usd_per_gb_per_s=network.switch_price_usd_per_gb_per_s,
                switch_w_per_gb_per_s=network.switch_power_w_per_gb_per_s,
            ),
        )

    @property
    def is_per_core(self) -> bool:
        """Whether the chip's own figures are given per core, so that a chip of any size can be asked for."""
        return all(
            amount.per_core for amount in (self.accelerator.sram, self.accelerator.price, self.accelerator.power)
        )

    def with_cores(self, cores: int) -> "System":
        """Return the system with chips of ``cores`` cores; figures that are given per core scale with it.

        Raises:
            UserError: no cores, or more than the chip has where its figures are for the whole chip.
        """
        if cores < 1:
            raise UserError(f"system {self.name!r}: found {cores} cores against at least 1")
        if not self.is_per_core and cores > self.accelerator.cores:
            raise UserError(
                f"system {self.name!r}: found {cores} cores against {self.accelerator.cores} of its chip "
                "(figures per core, such as 'price_usd_per_core', describe chips of any size)"
            )
        return replace(self, accelerator=replace(self.accelerator, cores=cores))

    @property
    def one_chip(self) -> "System":
        """One chip of the system, without a network."""
        return replace(self, chips=1, network=ONE_CHIP)

    def in_groups(self, groups: int) -> "System":
        """Return one of equal groups of the cores of a chip: with its part of SRAM and DRAM, of price and power.

        How many cores it has `with_cores` says.
        """
        if groups == 1:
            return self
        chip, bandwidth = self.accelerator, self.dram.bandwidth
        if not self.is_dram_unlimited:
            bandwidth = Amount(self.dram_gb_per_s / groups)
        sram, price, power = (amount.divided(groups) for amount in (chip.sram, chip.price, chip.power))
        part = replace(self.dram, bandwidth=bandwidth, capacity=self.dram.capacity.divided(groups))
        return replace(self, accelerator=replace(chip, sram=sram, price=price, power=power), dram=part)

    def require_chips(self, chips: int) -> None:
        """Check that the system has so many chips.

        Raises:
            UserError: no chips, or more than there are.
        """
        if chips < 1:
            raise UserError(f"system {self.name!r}: found {chips} chips against at least 1")
        dimensions = self.network.dimensions
        if chips > 1 and not dimensions:
            raise UserError(f"system {self.name!r}: found {chips} chips against 1: its file has no network")
        if chips > math.prod(dimension.chips for dimension in dimensions):
            sizes = " x ".join(str(dimension.chips) for dimension in dimensions)
            raise UserError(f"system {self.name!r}: found {chips} chips against the {sizes} of its network")

    def parts(self, chips: int) -> tuple["System", ...]:
        """Return every part of the system of ``chips`` chips: some of those along each dimension of its network.

        Those with fewer dimensions come first, then those with more chips along inner ones. There may be none.
        """
        if chips == 1:
            return (self.one_chip,)
        most = tuple(dimension.chips for dimension in self.network.dimensions)
        found = sorted(extents(chips, most), key=lambda one: (sum(count > 1 for count in one), [-n for n in one]))
        return tuple(self._part(counts) for counts in found)

    def _part(self, counts: tuple[int, ...]) -> "System":
        network = self.network
        all_kinds = zip(network.kind.split("_"), network.dimensions, counts, strict=True)
        used = [(kind, replace(dimension, chips=count)) for kind, dimension, count in all_kinds if count > 1]
        kinds, dimensions = zip(*used, strict=True)
        part = replace(network, kind="_".join(kinds), dimensions=dimensions)
        return replace(self, chips=math.prod(counts), network=part)


def extents(chips: int, most: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every product of chips along each dimension, at most so many, that gives a number of chips."""
    if len(most) <= 1:
        yield from [(chips,)] if most and chips <= most[0] else []
        return
    for count in range(1, min(chips, most[0]) + 1):
        if chips % count == 0:
            for rest in extents(chips // count, most[1:]):
                yield (count, *rest)
