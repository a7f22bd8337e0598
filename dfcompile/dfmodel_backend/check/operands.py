"""What a chip needs of a tensor, told by letters [ko24]: for checkers, which share no code with the evaluator."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim

WHOLE, ROWS, COLUMNS = "RR", "SR", "RS"
# Dimensions along rows and columns of a matrix that is read, outer ones first; preferred readings first.
_ELEMENTWISE = ("OM,N", "N,OM", "M,N", "OM,", ",N")
_A = ("OM,K", "OK,M", "M,K", "K,M")
_B = ("OK,N", "ON,K", "K,N", "N,K")
_READINGS: Mapping[KernelVariant, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        KernelVariant.GEMM_INPUT1_WEIGHT: (_B,),
        KernelVariant.GEMM_INPUT1_INPUT2: (_A, _B),
        KernelVariant.ELEMENTWISE_INPUT1: (_ELEMENTWISE,),
        KernelVariant.ELEMENTWISE_INPUT1_INPUT2: (_ELEMENTWISE,),
    }
)
# By the split dimension of a kernel, in the order O, M, K, N, none: how what it makes lies, and what it needs.
_SPLITS = (Dim.OUTER, Dim.M, Dim.K, Dim.N, Dim.NONE)
_GIVEN = ("SR", "SR", "RR", "RS", "RR")
_NEEDED = MappingProxyType(
    {
        "elementwise": ("SR", "SR", "RR", "RS", "RR"),
        "first": ("SR", "RR", "SR", "RS", "RR"),
        "second": ("SR", "SR", "RS", "RR", "RR"),
        "weight update": ("SR", "SR", "RS", "SR", "RR"),
    }
)
Conversions = Sequence[tuple[int, Collective]]  # id of the kernel that makes a tensor, and what changes its layout
Pair = tuple[DesignKernel, DesignKernel]


def conversions_of(design: Design, sharding: Mapping[int, Dim], compatibility: Compatibility) -> Conversions:
    """Return, per edge that changes a layout, the id of its giver and what changes it."""
    if not design.shards_kernels:
        return []
    changes = _changes_by_letter if compatibility.layouts_by_letter else changes_by_axes
    return list(changes(design, sharding))


def _changes_by_letter(design: Design, sharding: Mapping[int, Dim]) -> Iterator[tuple[int, Collective]]:
    kernels = {kernel.id: kernel for kernel in design.kernels}
    for edge in design.edges:
        giver, taker = kernels[edge.source], kernels[edge.target]
        given = _GIVEN[_SPLITS.index(sharding.get(giver.id, Dim.NONE))]
        row = "first"
        if not taker.variant.is_gemm:
            row = "elementwise"
        elif taker.tiling is Dim.K:
            row = "weight update"
        elif taker.variant is KernelVariant.GEMM_INPUT1_INPUT2 and giver.output_bytes != taker.input_1_bytes:
            row = "second" if giver.output_bytes == taker.input_2_bytes else "first"
        needed = _NEEDED[row][_SPLITS.index(sharding.get(taker.id, Dim.NONE))]
        if given not in (WHOLE, needed):
            yield giver.id, Collective.ALL_GATHER if needed == WHOLE else Collective.ALL_TO_ALL


def changes_by_axes(design: Design, sharding: Mapping[int, Dim]) -> Iterator[tuple[int, Collective]]:
    """Yield the giver's id and the collective, for each tensor that is not held as it is needed."""
    kernels = {kernel.id: kernel for kernel in design.kernels}
    within = [(kernels[edge.source], kernels[edge.target]) for edge in design.edges]
    for pairs in (within, _between_layers(design)):
        for number, (giver, taker) in enumerate(pairs):
            held = {Dim.OUTER: ROWS, Dim.M: ROWS, Dim.N: COLUMNS}.get(sharding.get(giver.id, Dim.NONE), WHOLE)
            needed = _needed(pairs, number, sharding.get(taker.id, Dim.NONE))
            if held not in (WHOLE, needed):
                yield giver.id, Collective.ALL_GATHER if needed == WHOLE else Collective.ALL_TO_ALL


def _between_layers(design: Design) -> list[Pair]:
    """Return who hands a matrix to whom at the end of a layer."""
    batch = design.execution.batch
    if batch.layers < 2 or batch.layers_in_graph != 1:  # one layer follows another
        return []
    sources, targets = ({getattr(edge, end) for edge in design.edges} for end in ("source", "target"))
    return [
        (giver, taker)
        for giver in design.kernels
        for taker in design.kernels
        if giver is not taker
        and giver.id not in sources
        and taker.id not in targets
        and giver.collective is not Collective.ALL_REDUCE_PERIODIC
        and not taker.variant.is_gemm
        and (giver.backward, giver.outer * giver.m, giver.n) == (taker.backward, taker.outer * taker.m, taker.n)
    ]


def _needed(pairs: Sequence[Pair], number: int, split: Dim) -> str:
    giver, taker = pairs[number]
    reading = _reading(pairs, number)
    sizes = {"O": taker.outer, "M": taker.m, "K": taker.k, "N": taker.n}
    if reading is None:
        same = giver.outer * giver.m * giver.n == taker.outer * taker.m * taker.n
        return ROWS if same and not taker.variant.is_gemm and split in (Dim.OUTER, Dim.M) else WHOLE
    for side, layout in zip(reading.split(","), (ROWS, COLUMNS), strict=True):
        cut = [letter for letter in side if sizes[letter] > 1]
        if split.value in side:
            return layout if cut[:1] == [split.value] else WHOLE
    return WHOLE


def _reading(pairs: Sequence[Pair], number: int) -> str | None:
    """Return how a tensor is read: tensors that fit one operand alone go first, then each takes a free operand."""
    taker = pairs[number][1]
    operands = _READINGS[taker.variant]
    rest = [place for place, pair in enumerate(pairs) if pair[1] is taker]
    fits = {place: [_fitting(operand, *pairs[place]) for operand in operands] for place in rest}
    used: set[int] = set()
    for count in range(len(operands) + 1):
        for place in (place for place in rest if sum(map(bool, fits[place])) == count):
            possible = [operand for operand, readings in enumerate(fits[place]) if readings]
            chosen = next((operand for operand in possible if operand not in used), possible[0] if possible else None)
            if place == number:
                return None if chosen is None else fits[place][chosen][0]
            if chosen is not None:
                used.add(chosen)
    return None


def _fitting(operand: Sequence[str], giver: DesignKernel, taker: DesignKernel) -> list[str]:
    sizes = {"O": taker.outer, "M": taker.m, "K": taker.k, "N": taker.n}
    wanted = [giver.outer * giver.m, giver.n]
    return [one for one in operand if [prod(sizes[letter] for letter in side) for side in one.split(",")] == wanted]


def statistics_of(kernel: DesignKernel, split: Dim, rows: int, columns: int) -> int:
    """Return how many sums or extrema the chips that share a normalization or a softmax exchange."""
    is_told = any(word in kernel.name.lower() for word in ("norm", "softmax")) and not kernel.variant.is_gemm
    tiled_rows = kernel.tiling in (Dim.OUTER, Dim.M)
    if is_told and split is (Dim.N if tiled_rows else Dim.M):
        return 2 * (rows if tiled_rows else columns)
    return 0
