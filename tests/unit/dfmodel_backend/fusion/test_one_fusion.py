"""Where their assumptions meet, graphs of models and designs have the same figures and the same optimum."""

import pytest
from hypothesis import given

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend import (
    DataflowGraph,
    MappingOptions,
    System,
    Tensor,
    TensorKind,
    check_mapping,
    map_graph,
)
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.evaluate.designs import Decision, figures_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem, configs_of
from dfcompile.dfmodel_backend.fusion.fusion_solver import find_solver
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Accelerator, Amount, Dram
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.designs import designs
from tests.unit.dfmodel_backend.graphs import evaluate_mapping, tensor


def on_one_chip(design: Design) -> Design:
    """Without what graphs of models do not have: other chips, halves, connections without tensor, given extra bytes.

    Elementwise kernels of one column: designs spread rows over lanes, graphs all elements.
    """
    kernels = tuple(
        replace(kernel, backward=None, memory_bytes=0.0, sram_extra_bytes=0.0, n=kernel.n if kernel.systolic else 1)
        for kernel in design.kernels
    )
    edges = tuple(replace(edge, zero_out=False) for edge in design.edges)
    links = tuple(replace(link, chips=1) for link in design.machine.links)
    machine = replace(design.machine, chips=1, links=links, sram_bytes=0.0, dram_bytes=0.0)
    return Design(kernels, edges, machine, design.execution)


def graph_of(design: Design) -> DataflowGraph:
    """Each connection is a tensor of its own with one reader; weights are what one kernel holds."""
    names = {kernel.id: kernel.name for kernel in design.kernels}
    word = design.execution.word_bytes
    kernels = tuple(
        Kernel(
            kernel.name,
            "",
            kernel.name,
            "",
            kernel.variant,
            kernel.outer,
            kernel.m,
            kernel.k,
            kernel.n,
            (),
            (),
        )
        for kernel in design.kernels
    )
    tensors: list[Tensor] = []
    for kernel in design.kernels:
        if kernel.has_weight:
            size = kernel.outer * kernel.m * kernel.k * word
            tensors.append(tensor(f"w{kernel.id}", TensorKind.WEIGHT, size, "", kernel.name))
    for number, edge in enumerate(design.edges):
        source = next(kernel for kernel in design.kernels if kernel.id == edge.source)
        size = source.outer * source.m * source.n * word
        kind = TensorKind.INTERMEDIATE
        tensors.append(tensor(f"t{number}", kind, size, names[edge.source], names[edge.target]))
    return DataflowGraph.of("same", kernels, tuple(tensors))


def system_of(design: Design) -> System:
    machine = design.machine
    chip = Accelerator(
        machine.cores,
        machine.lanes_per_core,
        machine.stages_per_core,
        machine.frequency_ghz,
        Amount(machine.sram_bytes),
        Amount(0.0),
        Amount(0.0),
    )
    dram = Dram(Amount(machine.dram_gb_per_s), Amount(machine.dram_bytes), 0.0, 0.0)
    return System("same", 1, chip, dram, ONE_CHIP, ())


@examples(100)
@given(designs())
def test_a_connection_is_a_tensor_with_one_reader(drawn: Design) -> None:
    design = on_one_chip(drawn)
    execution = design.execution
    options = MappingOptions(
        overlap=execution.overlap,
        compute_utilization=execution.compute_utilization,
        max_configurations=execution.configurations,
    )
    model = DesignModel(design, {kernel.id: Dim.NONE for kernel in design.kernels}, 1, RIGHT)

    found = find_solver(options.solver).solve(FusionProblem(model, options))
    if found.chain is None:
        with pytest.raises(InfeasibleError):
            map_graph(graph_of(design), system_of(design), options)
        return
    figures = figures_of(model, Decision(model.sharding, 1, configs_of(model, found.chain)))
    graph, system = graph_of(design), system_of(design)
    mapping = map_graph(graph, system, options)
    check_mapping(graph, system, mapping)

    assert mapping.figures.time_s * 1e9 == pytest.approx(figures.step_ns, rel=1e-9)
    steps = [step for step in figures.steps if step.kernels]
    configs = evaluate_mapping(graph, system, tuple(step.kernels for step in steps), options).configs
    for config, step in zip(configs, steps, strict=True):
        assert config.compute_ns == pytest.approx(step.compute_ns, rel=1e-9)
        assert config.dram_read_bytes + config.dram_write_bytes == step.dram_bytes
        assert config.sram_bytes == step.sram_bytes
