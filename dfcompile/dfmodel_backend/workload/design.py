"""A design: a training, inference or scientific workload as a graph of one layer, and how it runs [ko24]."""

from enum import StrEnum, unique

from msgspec import Struct

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.machine.system import Collective, LaneStage, Machine
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.graph import topological_numbers


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


class DesignKernel(Struct, frozen=True):
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
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of its output: ``outer`` matrices, one below the other."""
        return self.outer * self.m, self.n

    @property
    def flop(self) -> float:
        """FLOP of all its inputs, unsharded."""
        elements = self.outer * self.m * self.n * max(1, self.num_input)
        return 2 * elements * self.k if self.systolic else elements


class DesignEdge(Struct, frozen=True):
    """A connection between two kernels, by id."""

    source: int
    target: int
    zero_out: bool
    label: LaneStage | None = None  # None: by the variant of the target


@unique
class WorkloadKind(StrEnum):
    """What the graph is a layer or a step of."""

    LLM = "llm"
    DLRM = "dlrm"
    HPL = "hpl"
    FFT = "fft"


class Batch(Struct, frozen=True):
    """Sizes of a workload; what a kind of workload does not have is 0 or 1."""

    kind: WorkloadKind
    hidden: int = 0
    sequence: int = 0
    layers: int = 1
    layers_in_graph: int = 1
    global_batch: int = 1
    micro_batch: int = 0  # 0: free
    tile: int = 0  # 0: free
    copies: int = 1
    table_bytes: float = 0.0  # embeddings, matrix or vector of all chips of a copy


class Execution(Struct, frozen=True):
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


class Design(Struct, frozen=True):
    """A design file, checked."""

    kernels: tuple[DesignKernel, ...]
    edges: tuple[DesignEdge, ...]
    machine: Machine
    execution: Execution

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Positions of the kernels at both ends of each connection."""
        position = {kernel.id: number for number, kernel in enumerate(self.kernels)}
        return [(position[edge.source], position[edge.target]) for edge in self.edges]

    @property
    def levels(self) -> list[int]:
        """Length of the longest path to each kernel."""
        return topological_numbers(len(self.kernels), self.ends)

    @property
    def shards_kernels(self) -> bool:
        """Whether kernels are split over a tensor parallel group: of language models, unless switched off."""
        return self.execution.batch.kind is WorkloadKind.LLM and not self.execution.skip_inter_chip

    @property
    def is_pipelined(self) -> bool:
        """Whether the graph holds all layers, to be parted into stages of a pipeline."""
        return self.execution.batch.layers_in_graph > 1

    @property
    def is_kernel_by_kernel(self) -> bool:
        """Whether every kernel is alone; as many configurations as kernels mean that, too [ko24]."""
        return self.execution.kernel_by_kernel or self.execution.configurations in (0, len(self.kernels))

    @property
    def slots(self) -> int:
        """How many configurations there are at most."""
        return self.execution.configurations or len(self.kernels)

    @property
    def slots_of_stage(self) -> int:
        """How many configurations a stage of a pipeline has at most."""
        return len(self.kernels) if self.is_kernel_by_kernel else self.slots
