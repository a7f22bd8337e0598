"""The text of a workload graph as a design file has it [ko24]."""

from typing import assert_never

from google.protobuf import text_format

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import UserError
from dfcompile.generators.workloads.workload_graph import (
    Communication,
    Direction,
    WorkloadConnection,
    WorkloadGraph,
    WorkloadKernel,
)

Variant = (
    schema.GEMM_Input1_Weight | schema.GEMM_Input1_Input2 | schema.Elementwise_Input1 | schema.Elementwise_Input1_Input2
)

LARGEST_SIZE = (2 - 2**-23) * 2.0**127  # of 32-bit floating-point numbers
DIRECTIONS = {Direction.FORWARD: schema.FWD, Direction.BACKWARD: schema.BWD}
TILINGS = {
    Dim.OUTER: schema.OUTER_TILING,
    Dim.M: schema.M_TILING,
    Dim.K: schema.K_TILING,
    Dim.N: schema.N_TILING,
    Dim.NONE: schema.NO_TILING,
}
COMMUNICATIONS = {
    Collective.ALL_REDUCE: schema.ALL_REDUCE,
    Collective.ALL_TO_ALL: schema.ALL_TO_ALL,
    Collective.ALL_GATHER: schema.ALL_GATHER,
    Collective.ALL_REDUCE_PERIODIC: schema.ALL_REDUCE_PERIODIC,
    Collective.POINT_TO_POINT: schema.POINT_TO_POINT,
    Collective.BROADCAST: schema.BROADCAST,
}


def design_text(graph: WorkloadGraph) -> str:
    """Return a design file that has the graph and nothing else: ``dataflow_graph { kernels { … } … }``."""
    return text_format.MessageToString(schema.DSE(dataflow_graph=graph_message(graph)))


def graph_text(graph: WorkloadGraph) -> str:
    """Return the graph alone: ``kernels { … } … connections { … } …``."""
    return text_format.MessageToString(graph_message(graph))


def graph_message(graph: WorkloadGraph) -> schema.Dataflow_Graph:
    """Return the graph as a message; sizes become 32-bit floating-point numbers.

    Raises:
        UserError: a size that is no such number.
    """
    return schema.Dataflow_Graph(
        kernels=[_kernel_message(kernel, number) for number, kernel in enumerate(graph.kernels, start=1)],
        connections=[_connection_message(connection) for connection in graph.connections],
    )


def _connection_message(connection: WorkloadConnection) -> schema.Connection:
    return schema.Connection(
        startIdx=connection.source, endIdx=connection.target, id=connection.id, zero_out=connection.is_empty
    )


def _kernel_message(kernel: WorkloadKernel, number: int) -> schema.Kernel:
    largest = max(kernel.input_bytes, kernel.second_input_bytes, kernel.weight_bytes, kernel.output_bytes)
    if max(largest, kernel.memory_bytes) > LARGEST_SIZE:
        raise UserError(f"kernel {kernel.name!r}: found {largest} bytes against at most {LARGEST_SIZE:.4g} in a file")
    message = schema.Kernel(name=kernel.name, id=number, config=kernel.configuration, type=kernel.type.value)
    if kernel.direction is not None:
        message.fwd_bwd = DIRECTIONS[kernel.direction]
    variant = _variant_of(message, kernel)
    variant.outer, variant.M, variant.N = kernel.outer, kernel.m, kernel.n
    variant.output_tensor_size = kernel.output_bytes
    variant.tiling = TILINGS[kernel.tiling]
    variant.memory_size = kernel.memory_bytes
    variant.sram_extra = variant.dram_extra = kernel.resident_bytes
    variant.num_input = kernel.inputs
    _set_communication(variant, kernel.communication, kernel.second_communication)
    return message


def _variant_of(message: schema.Kernel, kernel: WorkloadKernel) -> Variant:
    """Return the variant's message with the fields that not every variant has."""
    pair: schema.GEMM_Input1_Input2 | schema.Elementwise_Input1_Input2
    match kernel.variant:
        case KernelVariant.GEMM_INPUT1_WEIGHT:
            weighted = message.gemm_input1_weight
            weighted.K = kernel.k
            weighted.input_tensor_size = kernel.input_bytes
            weighted.weight_tensor_size = kernel.weight_bytes
            weighted.skip_weight = kernel.is_weight_skipped
            return weighted
        case KernelVariant.ELEMENTWISE_INPUT1:
            message.elementwise_input1.input_tensor_size = kernel.input_bytes
            return message.elementwise_input1
        case KernelVariant.GEMM_INPUT1_INPUT2:
            message.gemm_input1_input2.K = kernel.k
            pair = message.gemm_input1_input2
        case KernelVariant.ELEMENTWISE_INPUT1_INPUT2:
            pair = message.elementwise_input1_input2
        case _:
            assert_never(kernel.variant)
    pair.input_tensor_1_size = kernel.input_bytes
    pair.input_tensor_2_size = kernel.second_input_bytes
    return pair


def _set_communication(variant: Variant, first: Communication | None, second: Communication | None) -> None:
    if first is not None:
        variant.communication_type = COMMUNICATIONS[first.collective]
        variant.communication_size = first.size_bytes
    if second is not None:
        variant.communication_type_2 = COMMUNICATIONS[second.collective]
        variant.communication_size_2 = second.size_bytes
