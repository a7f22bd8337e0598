"""Small random dataflow graphs and machines that are tight: not all kernels fit a chip together."""

from random import Random

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.dfmodel_backend import DataflowGraph, System, Tensor, TensorKind, Use
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Accelerator, Amount, Dram


def random_graph(random: Random, kernels: int) -> DataflowGraph:
    """Return a graph of so many kernels: products with weights and elementwise ones, each read by any later ones."""
    made = []
    tensors = [_tensor("x", TensorKind.INPUT, random.randrange(300), "", ["k0", "k1"][:kernels])]
    for number in range(kernels):
        name = f"k{number}"
        if random.random() < 0.5:  # half of them
            m, k, n = (random.randint(1, 6) for _ in range(3))
            made.append(Kernel(name, "MatMul", name, "mv", KernelVariant.GEMM_INPUT1_WEIGHT, 1, m, k, n, (), ()))
            tensors.append(_tensor(f"w{number}", TensorKind.WEIGHT, random.randrange(300), "", [name]))
        else:
            variant, elements = KernelVariant.ELEMENTWISE_INPUT1, random.randint(1, 30)
            made.append(Kernel(name, "Elementwise", name, "map", variant, 1, elements, 1, 1, (), ()))
        readers = [f"k{later}" for later in range(number + 1, kernels) if random.randrange(3) == 0]
        kind = TensorKind.INTERMEDIATE if readers and random.randrange(2) else TensorKind.OUTPUT
        tensors.append(_tensor(f"t{number}", kind, random.randrange(300), name, readers))
    return DataflowGraph.of("random", tuple(made), tuple(tensors))


def random_system(random: Random) -> System:
    """Return a chip of few cores whose SRAM and DRAM are small or unlimited."""
    cores, lanes, sram = random.randint(1, 8), random.randint(1, 2), Amount(random.choice([0, 300, 600, 1200]))
    chip = Accelerator(cores, lanes, 1, 1.0, sram=sram, price=Amount(100.0), power=Amount(10.0))
    dram = Dram(Amount(random.choice([0.5, 2.0, 8.0, 100.0])), Amount(random.choice([0, 0, 1200, 2500])), 1.0, 0.5)
    return System("random", 1, chip, dram, ONE_CHIP, ())


def _tensor(name: str, kind: TensorKind, size_bytes: int, source: str, readers: list[str]) -> Tensor:
    return Tensor(name, kind, size_bytes, source, tuple(Use(reader, 0) for reader in readers))
