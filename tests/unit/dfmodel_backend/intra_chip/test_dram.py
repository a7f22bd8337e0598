"""What one chip keeps in DRAM while it trains, by hand: two layers of a forward and a backward product per stage."""

import numpy as np
import pytest

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, DramNeed, dram_need
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.records import replace
from tests.unit.dfmodel_backend.designs import TEMPLATE


def product(number: int, *, backward: bool) -> DesignKernel:
    """A weight of 4 x 6 times an input of 6 x 8, of 2 bytes an element; the backward one makes gradients."""
    collective = Collective.ALL_REDUCE_PERIODIC if backward else Collective.NONE
    return DesignKernel(
        name=f"g{number}", id=number, pinned_config=-1, backward=backward, systolic=True,
        variant=KernelVariant.GEMM_INPUT1_WEIGHT, outer=1, m=4, k=6, n=8, input_1_bytes=96, input_2_bytes=0,
        output_bytes=64, tiling=Dim.NONE, collective=collective, collective_bytes=0, collective_2=Collective.NONE,
        memory_bytes=0, skip_weight=False, use_effective_stage=False, num_input=0, sram_extra_bytes=0,
        dram_extra_bytes=0,
    )  # fmt: skip


def model(inputs: int, micro_batch: int = 1, tiles: int = 1) -> DesignModel:
    """Eight layers on four stages of a chip each."""
    links = tuple(
        replace(TEMPLATE.machine.links[0], shape="r", chips=chips, parallelism=parallelism)
        for chips, parallelism in ((1, "TP"), (4, "PP"))
    )
    machine = replace(TEMPLATE.machine, chips=4, links=links, topology="r_r")
    batch = replace(
        TEMPLATE.execution.batch, layers=8, layers_in_graph=1, global_batch=inputs, micro_batch=micro_batch, tile=0,
        sequence=8,
    )  # fmt: skip
    execution = replace(TEMPLATE.execution, batch=batch, kernel_by_kernel=False, configurations=2, word_bytes=2)
    kernels = (product(1, backward=False), product(2, backward=True))
    return DesignModel(Design(kernels, (DesignEdge(1, 2, zero_out=False),), machine, execution), {}, tiles)


@pytest.mark.parametrize(
    ("inputs", "micro_batch", "kept"),
    [
        (12, 1, 2 * 4 - 1),  # as many micro-batches as stages are in flight; one layer of one waits elsewhere
        (3, 1, 2 * 3 - 1),
        (1, 1, 2 - 1),
        (12, 4, (2 * 3 - 1) * 4),
    ],
)
def test_training_keeps_weights_gradients_states_and_activations(inputs: int, micro_batch: int, kept: int) -> None:
    """24 parameters a layer; 32 elements of an activation, that the backward product reads, and of a gradient."""
    assert dram_need(model(inputs, micro_batch)) == DramNeed(
        weights=2 * 24 * 2, gradients=2 * 32 * 2, optimizer=2 * 24 * 12, activations=kept * 32 * 2, tables=0.0
    )


def test_a_tensor_waits_from_where_it_is_made_to_where_it_is_read_but_not_on_the_chip() -> None:
    nothing, first, second, both = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=bool)[:, None, :]
    one = model(1)

    def waiting(before: np.ndarray, inside: np.ndarray) -> float:
        return float(one.waiting_bytes(before, inside)[0])

    assert waiting(nothing, first) == 64
    assert waiting(first, second) == 64
    assert waiting(nothing, both) == 0
    assert waiting(both, nothing) == 0
