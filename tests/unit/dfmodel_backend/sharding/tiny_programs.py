"""Random tiny programs: what every iteration of a kernel reads and writes comes from numpy, not from its loops."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.dfmodel_backend import DataflowGraph, System, Tensor, TensorKind, Use
from dfcompile.dfmodel_backend.machine.system import Accelerator, Amount, Dimension, Dram, Network
from dfcompile.lowering.operators import CanonicalOperator, Copy, Elementwise, MatMul, Reduce, Reduction
from dfcompile.lowering.operators.loop_nest import kernel_loops
from dfcompile.lowering.tensor import Tensor as Array

Integers = npt.NDArray[np.int64]
ELEMENT_BYTES = 4
EXTENTS = (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """What a kernel does, element by element.

    Attributes:
        loops: names of the dimensions of the iteration space, in order.
        space: its extents.
        reads: per operand the offset of the element that each iteration reads.
        writes: the offset that each iteration writes.
        combine: how values of one element become one: ``add`` or ``maximum``.
    """

    loops: tuple[str, ...]
    space: tuple[int, ...]
    reads: tuple[Integers, ...]
    writes: Integers
    combine: str

    def values(self, operands: Sequence[Integers]) -> Integers:
        """Return what each iteration adds: the product of what it reads, as good as any function of it."""
        found = np.ones(prod(self.space), np.int64)
        for offsets, operand in zip(self.reads, operands, strict=True):
            found = found * operand[offsets]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A dataflow graph with the meaning of each kernel."""

    graph: DataflowGraph
    meanings: dict[str, Meaning]


class _Builder:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.arrays: dict[str, tuple[int, ...]] = {}
        self.kinds: dict[str, TensorKind] = {}
        self.sources: dict[str, str] = {}
        self.kernels: list[Kernel] = []
        self.meanings: dict[str, Meaning] = {}

    def outside(self, shape: tuple[int, ...]) -> str:
        """Return an input or weight of a shape: often one that there is already."""
        same = [
            name for name, kind in self.kinds.items()
            if kind in (TensorKind.WEIGHT, TensorKind.INPUT) and prod(self.arrays[name]) == prod(shape)
        ]  # fmt: skip
        if same and self.rng.random() < 0.5:
            return self.rng.choice(same)
        name = f"x{len(self.arrays)}"
        self.arrays[name] = shape
        self.kinds[name] = self.rng.choice([TensorKind.WEIGHT, TensorKind.INPUT])
        return name

    def made(self) -> tuple[str, tuple[int, ...]]:
        """Return an array, mostly one that a kernel makes, in some shape of its elements."""
        names = [name for name, kind in self.kinds.items() if kind is TensorKind.INTERMEDIATE]
        if not names or self.rng.random() < 0.2:
            shape = tuple(self.rng.choice(EXTENTS) for _ in range(self.rng.randint(1, 3)))
            return self.outside(shape), shape
        name = self.rng.choice(names[-2:])
        return name, self.reshaped(self.arrays[name])

    def reshaped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.rng.random() < 0.6:
            return shape
        left, found = prod(shape), list[int]()
        while left > 1 and len(found) < 3:
            extent = self.rng.choice([divisor for divisor in range(2, left + 1) if left % divisor == 0])
            found.append(extent)
            left //= extent
        return (*found, left) if left > 1 else tuple(found) or (1,)

    def add(
        self,
        operator: CanonicalOperator,
        operands: Sequence[tuple[str, tuple[int, ...]]],
        shape: tuple[int, ...],
        meaning: Meaning,
    ) -> None:
        name, result = f"k{len(self.kernels)}", f"t{len(self.kernels)}"
        views = [Array(array, view, "float32") for array, view in operands]
        made = Array(result, shape, "float32")
        operator.check(views, [made])
        contraction = operator.contraction(views, made)
        nest = operator.loop_nest(views, made)
        assert nest is not None
        weighted = any(self.kinds[array] is TensorKind.WEIGHT for array, _ in operands)
        gemm = KernelVariant.GEMM_INPUT1_WEIGHT if weighted else KernelVariant.GEMM_INPUT1_INPUT2
        self.kernels.append(
            Kernel(
                name=name,
                op=type(operator).__name__,
                origin=name,
                expansion="",
                variant=KernelVariant.ELEMENTWISE_INPUT1 if contraction is None else gemm,
                outer=1 if contraction is None else contraction.outer,
                m=prod(meaning.space) if contraction is None else contraction.m,
                k=1 if contraction is None else contraction.k,
                n=1 if contraction is None else contraction.n,
                loops=kernel_loops(nest, [view for _, view in operands], shape),
                inputs=tuple(array for array, _ in operands),
                outputs=(result,),
            )
        )
        self.arrays[result], self.kinds[result], self.sources[result] = shape, TensorKind.INTERMEDIATE, name
        self.meanings[name] = meaning

    def product(self) -> None:
        """A product, batched or with more rows, either operand stored the other way round."""
        left, shape = self.made()
        while len(shape) < 2:
            shape = (self.rng.choice([1, shape[0]]), shape[0]) if shape[0] == 1 else (1, *shape)
        transpose_a, transpose_b = self.rng.random() < 0.3, self.rng.random() < 0.5
        rows, inner = shape[-2:][::-1] if transpose_a else shape[-2:]
        columns = self.rng.choice(EXTENTS)
        lead = tuple(self.rng.choice([1, extent]) for extent in shape[:-2])[self.rng.randint(0, len(shape) - 2) :]
        other = (*lead, *((columns, inner) if transpose_b else (inner, columns)))
        right = self.outside(other)
        batch = shape[:-2]
        space = (*batch, rows, columns, inner)
        a = offsets(shape)
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        b = offsets(other)
        b = np.swapaxes(b, -1, -2) if transpose_b else b
        reads = (
            spread(a[..., :, None, :], space),
            spread(np.swapaxes(b, -1, -2)[..., None, :, :], space),
        )
        result = (*batch, rows, columns)
        loops = (*(f"b{axis}" for axis in range(len(batch))), "row", "column", "k")
        meaning = Meaning(loops, space, reads, spread(offsets(result)[..., None], space), "add")
        self.add(MatMul(transpose_a, transpose_b), [(left, shape), (right, other)], result, meaning)

    def elementwise(self) -> None:
        """Two operands of which the second is broadcast, comes from a kernel, or is the first."""
        first, shape = self.made()
        operands = [(first, shape)]
        kind = self.rng.randrange(3)
        if kind == 0:
            other = tuple(self.rng.choice([1, extent]) for extent in shape)[self.rng.randint(0, len(shape) - 1) :]
            operands.append((self.outside(other), other))
        elif kind == 1:
            same = [name for name, found in self.arrays.items() if prod(found) == prod(shape)]
            operands.append((self.rng.choice(same), shape))
        reads = tuple(spread(offsets(view), shape) for _, view in operands)
        meaning = Meaning(numbered(shape), shape, reads, offsets(shape).ravel(), "add")
        self.add(Elementwise(" * ".join("ab"[: len(operands)])), operands, shape, meaning)

    def reduction(self) -> None:
        name, shape = self.made()
        axes = tuple(axis for axis in range(len(shape)) if self.rng.random() < 0.5) or (len(shape) - 1,)
        kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        reduction = self.rng.choice([Reduction.SUM, Reduction.MAX])
        combine = "add" if reduction is Reduction.SUM else "maximum"
        meaning = Meaning(numbered(shape), shape, (offsets(shape).ravel(),), spread(offsets(kept), shape), combine)
        self.add(Reduce(reduction, axes), [(name, shape)], kept, meaning)

    def transpose(self) -> None:
        name, shape = self.made()
        order = list(range(len(shape)))
        self.rng.shuffle(order)
        result = tuple(shape[axis] for axis in order)
        read = tuple(f"i{order.index(axis)}" for axis in range(len(shape)))
        moved = np.transpose(offsets(shape), order).ravel()
        meaning = Meaning(numbered(result), result, (moved,), offsets(result).ravel(), "add")
        self.add(Copy(read=read), [(name, shape)], result, meaning)

    def finish(self) -> Program:
        tensors = []
        for name, shape in self.arrays.items():
            readers = [kernel for kernel in self.kernels if name in kernel.inputs]
            uses = tuple(Use(kernel.name, kernel.inputs.index(name)) for kernel in readers)
            kind = self.kinds[name]
            if kind is TensorKind.INTERMEDIATE and (not uses or self.rng.random() < 0.2):
                kind = TensorKind.OUTPUT
            size = prod(shape) * ELEMENT_BYTES
            tensors.append(Tensor(name, kind, size, self.sources.get(name, ""), uses, ELEMENT_BYTES))
        graph = DataflowGraph.of("tiny", tuple(self.kernels), tuple(tensors))
        return Program(graph, self.meanings)


def offsets(shape: tuple[int, ...]) -> Integers:
    """Return the offset of each element of an array."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)


def spread(found: Integers, space: tuple[int, ...]) -> Integers:
    """Return offsets for each iteration of a space."""
    return np.broadcast_to(found, space).ravel()


def numbered(shape: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"i{axis}" for axis in range(len(shape)))


def random_program(rng: random.Random, most: int) -> Program:
    """Return a program of up to so many kernels."""
    builder = _Builder(rng)
    for _ in range(rng.randint(1, most)):
        rng.choice([builder.product, builder.elementwise, builder.reduction, builder.transpose])()
    return builder.finish()


def random_system(rng: random.Random) -> System:
    """Return two to six chips along one dimension of a network, or along two."""
    kind = rng.choice(["r", "sw", "fc", "r_r", "r_r", "r_sw", "fc_fc"])
    chips = (rng.randint(2, 6),) if "_" not in kind else rng.choice([(2, 2), (2, 3), (3, 2)])
    dimensions = tuple(Dimension(count, rng.choice([0.5, 2.0, 10.0]), 0.1) for count in chips)
    network = Network(kind, dimensions, 1.0, 1.0, 0.1, link_latency_ns=rng.choice([0.0, 0.0, 5.0]))
    chip = Accelerator(rng.randint(2, 8), 1, 1, 1.0, Amount(0), Amount(100.0), Amount(10.0))
    dram = Dram(Amount(rng.choice([1.0, 8.0, 100.0])), Amount(0), 1.0, 0.5)
    return System("test", prod(chips), chip, dram, network, ())
