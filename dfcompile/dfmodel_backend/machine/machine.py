"""The machine that models compute on: chips and their network, with prices and powers [ko24].

A set-up file says one; a system file says one for chips of any number of cores (`System.machine`).
"""

import sys
from enum import StrEnum, unique
from typing import Annotated

from msgspec import Meta, Struct

# What files of machines may say, as they are read; machines that are made of others are not checked.
Count = Annotated[int, Meta(ge=1, le=10**9)]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
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


class Machine(Struct, frozen=True):
    """The chips and their network."""

    chips: int
    cores: int
    lanes_per_core: int
    stages_per_core: int
    frequency_ghz: float
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
    def peak_gflops(self) -> float:
        """Of one chip."""
        return 2.0 * self.lanes_per_core * self.stages_per_core * self.cores * self.frequency_ghz

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
