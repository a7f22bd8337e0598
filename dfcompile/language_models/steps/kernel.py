"""A kernel of a step: what it multiplies, and the bytes of every operand; and how a step is counted."""

from enum import StrEnum

from msgspec import Struct


class Fusion(StrEnum):
    """Which activations reach memory."""

    NONE = "none"  # of norms, residuals and activation functions too
    ELEMENTWISE = "elementwise"  # those of matrix products alone
    FULL = "full"  # those between layers alone: a bound, nothing is asked of the chip's memory


class Latent(StrEnum):
    """How latent attention multiplies."""

    AUTO = "auto"  # absorbed for decodes, naive for prompts
    NAIVE = "naive"  # keys and values are made again of all latents
    ABSORBED = "absorbed"  # queries are brought to the latents


class StepChoices(Struct, frozen=True):
    """How a step is counted.

    Attributes:
        causal: whether a token sees none after it.
        flash: whether scores stay on the chip [dao22]; else softmax is a kernel and scores are written.
        fusion: which activations reach memory.
        latent: how latent attention multiplies.
        shared_prefix: tokens that all sequences begin with and whose cache they share.
        expert_shares: how often each expert is chosen, in any unit; none: all as often.
    """

    causal: bool = True
    flash: bool = True
    fusion: Fusion = Fusion.NONE
    latent: Latent = Latent.AUTO
    shared_prefix: int = 0
    expert_shares: tuple[float, ...] = ()


class KernelKind(StrEnum):
    """What the operands are: matrices or vectors of activations or weights, or bytes that only move."""

    MATRIX_WEIGHTS = "Ma_Mw"
    VECTOR_WEIGHTS = "Va_Mw"
    MATRIX_GROUPED = "Ma_Mqa"
    VECTOR_GROUPED = "Va_Mqa"
    VECTOR = "Vector"
    GATHER = "Gather"
    KV_STORE = "Async_KVCache"


class Work(StrEnum):
    """Which efficiency of a calibrated device counts."""

    GEMM = "gemm"
    EXPERTS = "experts"
    PREFILL_ATTENTION = "attn_context"
    DECODE_ATTENTION = "attn_decode"
    PREFILL_LATENT = "latent_context"
    DECODE_LATENT = "latent_decode"
    CHUNKS = "chunked_scan"  # states of a mixer, updated and read by chunks of tokens
    RECURRENT = "recurrent"  # the same token by token, and short convolutions
    VECTOR = "vector"
    TRANSFER = "transfer"


class Role(StrEnum):
    """What a kernel is among those of its layer, as far as its gradients and what it keeps for them depend on it."""

    PLAIN = "plain"
    OPENING = "opening"  # reads what the norm before attention or MLP wrote, as others may that open the same
    WIDENING = "widening"  # opens an MLP, and an activation function reads what it makes
    EXPERT_WIDENING = "expert_widening"  # the same of experts, which read what was dispatched
    COMBINING = "combining"  # adds up what experts made
    BETWEEN = "between"  # norms, residuals and activation functions
    ATTENTION = "attention"  # scores, softmax and values in one
    SCORES = "scores"
    SOFTMAX = "softmax"
    DROPOUT = "dropout"  # of scores
    VALUES = "values"


class Kernel(Struct, frozen=True):
    """One kernel of a chip; ``count`` layers have one each.

    Attributes:
        kind: what the operands are.
        work: which efficiency counts.
        name: of the kernel.
        m: rows of the first operand.
        k: columns of the first, rows of the second.
        n: columns of the second.
        batch: products of that size.
        part: the kind of layer it belongs to, or embedding or head.
        count: how often it runs in a step.
        macs: multiply-accumulates of one run.
        again_macs: of these, those that gradients need again, as what they make stays on the chip.
        weight_bytes: read.
        act_in_bytes: activations read.
        act_out_bytes: activations written.
        kv_read_bytes: of the cache.
        kv_write_bytes: to the cache.
        offload_bytes: of the cache's bytes, those that cross the link to a memory beside the chip's own.
        vector_elements: that pass the vector unit: of norms and activation functions, scores of attention, and
            elements that are widened before they are multiplied; one operation each.
        rate: number format in which it multiplies.
        distinct: matrices of weights that the rows are spread over: expected experts.
        stored: number format of the second operand: of weights, or of the cache.
        launches: kernels that it stands for.
        role: in its layer.
    """

    kind: KernelKind
    work: Work
    name: str
    m: int
    k: int
    n: int
    batch: int = 1
    part: str = ""
    count: int = 1
    macs: int = 0
    again_macs: int = 0
    weight_bytes: int = 0
    act_in_bytes: int = 0
    act_out_bytes: int = 0
    kv_read_bytes: int = 0
    kv_write_bytes: int = 0
    offload_bytes: int = 0
    vector_elements: int = 0
    rate: str = "bf16"
    distinct: float = 1.0
    stored: str = ""
    launches: int = 1
    role: Role = Role.PLAIN

    @property
    def bytes(self) -> int:
        """Of all operands, once."""
        return self.weight_bytes + self.act_in_bytes + self.act_out_bytes + self.kv_read_bytes + self.kv_write_bytes

    @property
    def is_async(self) -> bool:
        """Whether it may run beside other kernels of its layer."""
        return self.kind is KernelKind.KV_STORE
