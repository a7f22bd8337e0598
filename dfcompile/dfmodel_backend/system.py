"""The machine: chips of cores with SRAM, DRAM, prices and powers."""

from dataclasses import dataclass, replace

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.errors import UserError


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure of a chip, given for the whole chip or per core."""

    value: float
    per_core: bool = False

    def of(self, cores: int) -> float:
        """Return the figure of a chip with this many cores."""
        return self.value * cores if self.per_core else self.value


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One chip: ``cores`` cores of ``lanes_per_core x stages_per_core`` multiply-adders."""

    cores: int
    lanes_per_core: int  # systolic width
    stages_per_core: int  # systolic height
    frequency_ghz: float
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

    @property
    def peak_gflops(self) -> float:
        """Two operations per multiply-adder and cycle."""
        return 2.0 * self.lanes_per_core * self.stages_per_core * self.cores * self.frequency_ghz


@dataclass(frozen=True, slots=True)
class Dram:
    """DRAM of one chip."""

    bandwidth: Amount  # GB/s, which is bytes per ns
    capacity: Amount  # bytes; 0 means unlimited
    price_usd_per_gb_per_s: float
    power_w_per_gb_per_s: float


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the network between chips, inner dimensions first."""

    chips: int
    link_bandwidth_gb_per_s: float
    link_power_w_per_gb_per_s: float


@dataclass(frozen=True, slots=True)
class Network:
    """The links between chips; ``kind`` names one shape per dimension: r ring, sw switch, fc fully connected."""

    kind: str
    dimensions: tuple[Dimension, ...]
    link_price_usd_per_gb_per_s: float
    switch_price_usd_per_gb_per_s: float
    switch_power_w_per_gb_per_s: float
    link_latency_ns: float


ONE_CHIP = Network("none", (), 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class System:
    """A machine of ``chips`` equal chips."""

    name: str
    chips: int
    accelerator: Accelerator
    dram: Dram
    network: Network
    sources: tuple[Assumption, ...]  # where each figure comes from

    @property
    def dram_gb_per_s(self) -> float:
        """DRAM bandwidth of one chip, in bytes per ns."""
        return self.dram.bandwidth.of(self.accelerator.cores)

    @property
    def dram_capacity_bytes(self) -> float:
        """DRAM capacity of one chip; 0 means unlimited."""
        return self.dram.capacity.of(self.accelerator.cores)

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

    def with_chips(self, chips: int) -> "System":
        """Return the system with ``chips`` chips, along the innermost dimension of its network.

        Raises:
            UserError: no chips, or more than there are along that dimension.
        """
        if chips < 1:
            raise UserError(f"system {self.name!r}: found {chips} chips against at least 1")
        if chips == 1:
            return replace(self, chips=1, network=ONE_CHIP)
        dimensions = self.network.dimensions
        if not dimensions:
            raise UserError(f"system {self.name!r}: found {chips} chips against 1: its file has no network")
        if chips > dimensions[0].chips:
            raise UserError(
                f"system {self.name!r}: found {chips} chips against {dimensions[0].chips} along the innermost "
                "dimension of its network"
            )
        innermost = replace(self.network, kind=self.network.kind.split("_")[0], dimensions=(self._first(chips),))
        return replace(self, chips=chips, network=innermost)

    def _first(self, chips: int) -> Dimension:
        return replace(self.network.dimensions[0], chips=chips)
