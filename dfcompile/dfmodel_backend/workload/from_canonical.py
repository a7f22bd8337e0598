"""Kernels and tensors of a canonical DAG, read as a dataflow graph."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from dfcompile.canonical_dag import CanonicalDag, Kernel, KernelTensor, KernelVariant, LoopPart, TensorRole
from dfcompile.dfmodel_backend.options import Assumption
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Tensor, TensorKind, Use
from dfcompile.errors import VerificationError
from dfcompile.records import replace

_HERE = "dfcompile"


def dataflow_graph(dag: CanonicalDag) -> DataflowGraph:
    """Return the dataflow graph of a canonical DAG.

    A kernel that reads parameters alone (the new layout of a convolution's filters, say) is prepared once when
    the weights are loaded: it is not mapped, and what it makes counts as a weight of its consumers. A weight that
    is the right operand, ``input[m, k] x weight[k, n]``, is brought to the form of [ko24], weight first, by
    swapping ``m`` and ``n``.

    Raises:
        VerificationError: a kernel names a tensor that the DAG does not have, or nobody makes an intermediate.
    """
    arrays = {tensor.name: tensor for tensor in dag.tensors}
    prepared, weights = _known_before(dag.kernels, arrays)
    mapped = tuple(kernel for kernel in dag.kernels if kernel.name not in prepared)
    # The kernels that read each array, and at which of their operands that are no weights.
    found: dict[str, list[Use]] = {}
    for kernel in mapped:
        operands = [array for array in kernel.inputs if array not in weights]
        for array in dict.fromkeys(kernel.inputs):
            found.setdefault(array, []).append(Use(kernel.name, 0 if array in weights else operands.index(array)))
    uses, writers = {name: tuple(uses) for name, uses in found.items()}, makers_of(mapped)
    tensors = {
        name: tuple(_tensors(array, writers.get(name, ()), uses.get(name, ()), is_weight=name in weights))
        for name, array in arrays.items()
    }
    assumptions = (
        Assumption("model inputs", "read from DRAM once by each configuration that uses them", _HERE),
        Assumption("model outputs", "written to DRAM once", _HERE),
        Assumption(
            "weights", "loaded from DRAM once by each configuration that uses them", "dfcompile; [ko24] leaves them out"
        ),
        Assumption("rows looked up in a table", "read from DRAM each time, the table itself stays there", _HERE),
        Assumption("elementwise kernels", "their elements are spread over all lanes that they get", _HERE),
        Assumption("kernels on parameters alone", _listed(prepared), "prepared when the weights are loaded, no time"),
    )
    return DataflowGraph.of(
        dag.name,
        tuple(_followed(_weight_first(kernel, weights), tensors) for kernel in mapped),
        (*chain.from_iterable(tensors.values()), *_memory_reads(mapped, weights)),
        assumptions,
    )


def _known_before(
    kernels: tuple[Kernel, ...], arrays: dict[str, KernelTensor]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the kernels whose operands are all known before the model runs, and the arrays that are."""
    for kernel in kernels:
        for array in (*kernel.inputs, *kernel.outputs):
            if array not in arrays:
                raise VerificationError(f"kernel {kernel.name!r}: no tensor {array!r} in the canonical dag")
    makers = makers_of(kernels)
    known = frozenset(name for name, array in arrays.items() if array.role is TensorRole.PARAMETER)
    prepared: dict[str, None] = {}
    while found := [one.name for one in kernels if one.name not in prepared and known.issuperset(one.inputs)]:
        prepared.update(dict.fromkeys(found))
        known |= {array for array, those in makers.items() if all(one.name in prepared for one in those)}
    return tuple(kernel.name for kernel in kernels if kernel.name in prepared), known


def makers_of(kernels: tuple[Kernel, ...]) -> dict[str, list[Kernel]]:
    """Return the kernels that write each array."""
    found: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        for array in kernel.outputs:
            found.setdefault(array, []).append(kernel)
    return found


def _tensors(
    array: KernelTensor, writers: Sequence[Kernel], uses: tuple[Use, ...], *, is_weight: bool
) -> Iterator[Tensor]:
    """Cut an array that several kernels write into one tensor per writer; what is left over is constant."""
    if is_weight or not writers:
        kind = TensorKind.WEIGHT if is_weight else TensorKind.INPUT
        if uses and not is_weight and array.role is not TensorRole.INPUT:
            raise VerificationError(f"tensor {array.name!r}: read, but no kernel writes it")
        if uses:
            yield Tensor(array.name, kind, array.size_bytes, "", uses, array.element_bytes)
        return
    kind = TensorKind.OUTPUT if array.role is TensorRole.OUTPUT else TensorKind.INTERMEDIATE
    left, is_whole = array.size_bytes, len(writers) == 1
    for writer in writers:
        share = left if is_whole else min(left, writer.outer * writer.m * writer.n * array.element_bytes)
        left -= share
        name = array.name if is_whole else f"{array.name}@{writer.name}"
        yield Tensor(name, kind, share, writer.name, uses, array.element_bytes)


def _memory_reads(mapped: tuple[Kernel, ...], weights: frozenset[str]) -> Iterator[Tensor]:
    """Yield what kernels read from memory beside their operands: it streams in like an input of the model."""
    for kernel in mapped:
        if kernel.memory_bytes:
            use = Use(kernel.name, sum(array not in weights for array in kernel.inputs))
            yield Tensor(f"{kernel.name}@memory", TensorKind.INPUT, kernel.memory_bytes, "", (use,), is_looked_up=True)


def _weight_first(kernel: Kernel, weights: frozenset[str]) -> Kernel:
    streamed = sum(array not in weights for array in kernel.inputs)
    if not kernel.variant.is_gemm:
        paired = KernelVariant.ELEMENTWISE_INPUT1_INPUT2 if streamed > 1 else KernelVariant.ELEMENTWISE_INPUT1
        return replace(kernel, variant=paired)
    variant = KernelVariant.GEMM_INPUT1_INPUT2 if streamed > 1 else KernelVariant.GEMM_INPUT1_WEIGHT
    if len(kernel.inputs) < 2 or kernel.inputs[1] not in weights or kernel.inputs[0] in weights:
        return replace(kernel, variant=variant)
    loops = tuple(replace(loop, part=_SWAPPED.get(loop.part, loop.part)) for loop in kernel.loops)
    return replace(kernel, variant=variant, m=kernel.n, n=kernel.m, loops=loops)


def _followed(kernel: Kernel, names: Mapping[str, Sequence[Tensor]]) -> Kernel:
    """Name tensors for arrays; of an array that several kernels write each part is one, and no loop is followed."""
    reads = [[tensor.name for tensor in names[array]] for array in kernel.inputs]
    loops = tuple(
        replace(
            loop,
            inputs=tuple(
                digit if len(found) == 1 else None
                for digit, found in zip(loop.inputs, reads, strict=True)
                for _ in found
            ),
        )
        for loop in kernel.loops
        if all(len(names[array]) == 1 for array in kernel.outputs)
    )
    writes = tuple(one.name for array in kernel.outputs for one in names[array] if one.source == kernel.name)
    return replace(kernel, loops=loops, inputs=tuple(name for found in reads for name in found), outputs=writes)


_SWAPPED = MappingProxyType({LoopPart.M: LoopPart.N, LoopPart.N: LoopPart.M})


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:8])
    return f"{len(names)}" + (f": {shown}" if names else "") + (", …" if len(names) > len(names[:8]) else "")
