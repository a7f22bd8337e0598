"""What cannot be mapped says which kernel, which limit and what would be enough."""

import pytest

from dfcompile.dfmodel_backend import DataflowGraph, MappingOptions, TensorKind, map_graph
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.graphs import chain, elementwise, machine, tensor


def test_sram_error_names_kernel_and_enough_sram() -> None:
    # a alone, in the finest tiles: one of 4 rows of the weight, x in 6 parts, one of 4 rows of t in 2 columns.
    with pytest.raises(InfeasibleError, match=r"kernel 'a': needs 32 bytes of SRAM.*against 31.*at least 32"):
        map_graph(chain(), machine(sram_bytes=31))

    assert map_graph(chain(), machine(sram_bytes=32)).figures.configs[0].weight_tiles == 4


def test_sram_per_core_error_names_enough_cores() -> None:
    system = machine(cores=3)
    system = replace(system, accelerator=replace(system.accelerator, sram=Amount(10, True)))

    with pytest.raises(InfeasibleError, match=r"against 30 of the chip \(at least 4 cores"):
        map_graph(chain(), system)


def test_dram_error_names_kernel_and_enough_capacity() -> None:
    with pytest.raises(InfeasibleError, match=r"found 112 bytes alive in DRAM.*against 100.*at least 112"):
        map_graph(chain(), machine(cores=1, capacity_bytes=100))


@pytest.mark.parametrize("solver", ["dp", "cbc", "intervals"])
def test_too_few_configurations(solver: str) -> None:
    with pytest.raises(InfeasibleError, match="no mapping in at most 1 configurations"):
        map_graph(chain(), machine(cores=1), MappingOptions(solver=solver, max_configurations=1))


def test_cycle_is_named() -> None:
    with pytest.raises(UserError, match="kernel 'p': part of, or behind, a cycle"):
        DataflowGraph.of(
            "cycle",
            (elementwise("p", 1), elementwise("q", 1)),
            (tensor("s", TensorKind.INTERMEDIATE, 1, "p", "q"), tensor("t", TensorKind.INTERMEDIATE, 1, "q", "p")),
        )
