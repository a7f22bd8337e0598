"""Small dataflow graphs and systems for the tests of this stage."""

from typing import Any

from hypothesis import strategies as st

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop, KernelVariant, LoopKind, LoopPart
from dfcompile.dfmodel_backend import DataflowGraph, Mapping, MappingOptions, System, Tensor, TensorKind, Use
from dfcompile.dfmodel_backend.evaluate.graphs import Assignment, Figures, evaluate_sharding
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Accelerator, Amount, Dram
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.records import replace


def gemm(name: str, m: int, k: int, n: int, outer: int = 1, *, weight: bool = True) -> Kernel:
    variant = KernelVariant.GEMM_INPUT1_WEIGHT if weight else KernelVariant.GEMM_INPUT1_INPUT2
    return Kernel(name, "MatMul", name, "mv", variant, outer, m, k, n, (), ())


def split_gemm(name: str, m: int, k: int, n: int, outer: int = 1) -> Kernel:
    """Return products ``w[outer, m, k] x x[k, n] -> y[outer, m, n]`` whose loops may be split over chips."""

    def loop(part: LoopPart, extent: int, *strides: int) -> KernelLoop:
        w, x, y = (Digit(stride, 0) if stride else None for stride in strides)
        return KernelLoop(part.value, part, extent, LoopKind.PARALLEL if y else LoopKind.SUM, (w, x), (y,))

    loops = (
        loop(LoopPart.OUTER, outer, m * k, 0, m * n),
        loop(LoopPart.M, m, k, 0, n),
        loop(LoopPart.N, n, 0, 1, 1),
        loop(LoopPart.K, k, 1, n, 0),
    )
    used = tuple(one for one in loops if one.extent > 1)
    return replace(gemm(name, m, k, n, outer), loops=used, inputs=("w", "x"), outputs=("y",))


def elementwise(name: str, elements: int) -> Kernel:
    return Kernel(name, "Elementwise", name, "map", KernelVariant.ELEMENTWISE_INPUT1, 1, elements, 1, 1, (), ())


def tensor(name: str, kind: TensorKind, size_bytes: int, source: str, *kernels: str) -> Tensor:
    return Tensor(name, kind, size_bytes, source, tuple(Use(kernel, 0) for kernel in kernels))


def floats(name: str, kind: TensorKind, elements: int, source: str, *kernels: str) -> Tensor:
    """Return a tensor of so many elements of four bytes."""
    return replace(tensor(name, kind, 4 * elements, source, *kernels), element_bytes=4)


def with_figure(mapping: Mapping, **changed: object) -> Mapping:
    """Return a mapping with another figure, or with another statement on the optimum."""
    figures: dict[str, Any] = {name: value for name, value in changed.items() if hasattr(mapping.figures, name)}
    others: dict[str, Any] = {name: value for name, value in changed.items() if name not in figures}
    return replace(mapping, figures=replace(mapping.figures, **figures), **others)


def figure_of(mapping: Mapping, name: str) -> Any:
    """Return what `with_figure` changes."""
    return getattr(mapping.figures if hasattr(mapping.figures, name) else mapping, name)


def machine(
    cores: int = 4, sram_bytes: float = 0, gb_per_s: float = 1.0, capacity_bytes: float = 0, lanes: int = 1
) -> System:
    chip = Accelerator(cores, lanes, 1, 1.0, Amount(sram_bytes), Amount(100.0), Amount(10.0))
    return System("test", 1, chip, Dram(Amount(gb_per_s), Amount(capacity_bytes), 1.0, 0.5), ONE_CHIP, ())


def chain() -> DataflowGraph:
    """x -> a (4x3x2 gemm, 48-byte weight) -> b (8 elements) -> y; every stream is 32 bytes."""
    return DataflowGraph.of(
        "chain",
        (gemm("a", 4, 3, 2), elementwise("b", 8)),
        (
            tensor("x", TensorKind.INPUT, 32, "", "a"),
            tensor("w", TensorKind.WEIGHT, 48, "", "a"),
            tensor("t", TensorKind.INTERMEDIATE, 32, "a", "b"),
            tensor("y", TensorKind.OUTPUT, 32, "b"),
        ),
    )


@st.composite
def graphs(draw: st.DrawFn, most: int = 5) -> DataflowGraph:
    count = draw(st.integers(1, most))
    small = st.integers(1, 6)
    size = st.integers(0, 300)
    kernels = []
    tensors = [tensor("x", TensorKind.INPUT, draw(size), "", *(["k0", "k1"] if count > 1 else ["k0"]))]
    for number in range(count):
        name = f"k{number}"
        if draw(st.booleans()):
            kernels.append(gemm(name, draw(small), draw(small), draw(small), draw(st.integers(1, 2))))
            tensors.append(tensor(f"w{number}", TensorKind.WEIGHT, draw(size), "", name))
        else:
            kernels.append(elementwise(name, draw(st.integers(1, 30))))
        users = [f"k{later}" for later in range(number + 1, count) if draw(st.integers(0, 2)) == 0]
        kind = TensorKind.INTERMEDIATE if draw(st.booleans()) and users else TensorKind.OUTPUT
        tensors.append(tensor(f"t{number}", kind, draw(size), name, *users))
    return DataflowGraph.of("random", tuple(kernels), tuple(tensors))


def evaluate_mapping(
    graph: DataflowGraph, system: System, assignment: Assignment, options: MappingOptions | None = None
) -> Figures:
    return evaluate_sharding(graph, system.one_chip, {}, assignment, options or MappingOptions())


@st.composite
def machines(draw: st.DrawFn) -> System:
    return machine(
        cores=draw(st.integers(1, 8)),
        sram_bytes=draw(st.sampled_from([0, 300, 600, 1200])),
        gb_per_s=draw(st.sampled_from([0.5, 2.0, 8.0, 100.0])),
        capacity_bytes=draw(st.sampled_from([0, 0, 1200, 2500])),
        lanes=draw(st.integers(1, 2)),
    )


def cycles_of(kernel: KernelWork, split: CoreSplit, lanes_per_core: int, stages_per_core: int) -> int:
    """Return the cycles of a kernel: rows go to lanes, columns to stages [ko24, section 4].

    Neither filling the pipeline nor loading weights counts.
    """
    row_steps = -(-kernel.rows // (split.lanes * lanes_per_core))
    return row_steps * -(-kernel.columns // (split.stages * stages_per_core)) * kernel.steps
