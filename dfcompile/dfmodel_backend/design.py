"""A design: a training, inference or scientific workload as a graph of one layer, and the machine it runs on [ko24]."""

from dataclasses import dataclass
from enum import StrEnum, unique

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.pmu_grid import LaneStage, PmuGrid
from dfcompile.dfmodel_backend.system import Dimension, Network


@unique
class Dim(StrEnum):
    """A dimension of a kernel, to be sharded over chips or cut into tiles."""

    OUTER = "O"
    M = "M"
    K = "K"
    N = "N"
    NONE = "-"

    @property
    def shard(self) -> "Dim":
        """The dimension of a chip's share: outer and M are one, rows."""
        return Dim.M if self is Dim.OUTER else self


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


@dataclass(frozen=True, slots=True)
class DesignKernel:
    """One kernel; sizes in bytes of whole tensors."""

    name: str
    id: int
    pinned_config: int  # -1: free
    backward: bool | None  # None: the workload has no direction
    systolic: bool
    variant: KernelVariant
    outer: int
    m: int
    k: int
    n: int
    input_1_bytes: float
    input_2_bytes: float
    output_bytes: float
    tiling: Dim
    collective: Collective
    collective_bytes: float
    collective_2: Collective
    memory_bytes: float  # read from DRAM per execution of its configuration, per chip
    skip_weight: bool
    use_effective_stage: bool
    num_input: int
    sram_extra_bytes: float
    dram_extra_bytes: float
    pinned_sharding: Dim | None = None  # None: free

    @property
    def has_weight(self) -> bool:
        """Whether its first operand is a weight."""
        return self.variant is KernelVariant.GEMM_INPUT1_WEIGHT

    @property
    def flop(self) -> float:
        """FLOP of all its inputs, unsharded."""
        elements = self.outer * self.m * self.n * max(1, self.num_input)
        return 2 * elements * self.k if self.systolic else elements


@dataclass(frozen=True, slots=True)
class DesignEdge:
    """A connection between two kernels, by id."""

    source: int
    target: int
    zero_out: bool
    label: LaneStage | None = None  # None: by the variant of the target


@dataclass(frozen=True, slots=True)
class Link:
    """One dimension of the topology."""

    shape: str  # r ring, sw switch, fc fully connected
    chips: int  # 0: to be found
    gb_per_s: float
    parallelism: str  # TP, PP, DP or SP; empty for workloads that are not language models
    power_w_per_gb_per_s: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Unit prices and powers of everything but the links' power, which differs per dimension."""

    accelerator_usd: float
    accelerator_w: float
    dram_usd_per_gb_per_s: float
    dram_w_per_gb_per_s: float
    link_usd_per_gb_per_s: float
    switch_usd_per_gb_per_s: float
    switch_w_per_gb_per_s: float


@dataclass(frozen=True, slots=True)
class Machine:
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


@unique
class WorkloadKind(StrEnum):
    """What the graph is a layer or a step of."""

    LLM = "llm"
    DLRM = "dlrm"
    HPL = "hpl"
    FFT = "fft"


@dataclass(frozen=True, slots=True)
class Batch:
    """Sizes of a workload; what a kind of workload does not have is 0 or 1."""

    kind: WorkloadKind
    hidden: int
    sequence: int
    layers: int
    layers_in_graph: int
    global_batch: int
    micro_batch: int  # 0: free
    tile: int  # 0: free
    copies: int
    table_bytes: float  # embeddings, matrix or vector of all chips of a copy


@dataclass(frozen=True, slots=True)
class Execution:
    """How the graph runs."""

    batch: Batch
    kernel_by_kernel: bool
    configurations: int  # 0: as many as kernels
    overlap: Overlap
    compute_utilization: float  # 0: lanes and stages
    word_bytes: int
    effective_stage: int
    separate_reduce_scatter: bool
    skip_inter_chip: bool
    counted: str  # which of C, M, N count without overlap


@dataclass(frozen=True, slots=True)
class Design:
    """A design file, checked."""

    kernels: tuple[DesignKernel, ...]
    edges: tuple[DesignEdge, ...]
    machine: Machine
    execution: Execution

    @property
    def shards_kernels(self) -> bool:
        """Whether kernels are split over a tensor parallel group: of language models, unless switched off."""
        return self.execution.batch.kind is WorkloadKind.LLM and not self.execution.skip_inter_chip
