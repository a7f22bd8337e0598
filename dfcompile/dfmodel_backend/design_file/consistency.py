"""What fields of a design file must say together, those of memory units (PMUs) among them [ko24]."""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from dfcompile.dfmodel_backend.design_file.message import Gemm, Variant, variant_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.machine.system import Placement, PmuGrid
from dfcompile.dfmodel_backend.workload.graph import topological_order
from dfcompile.errors import UserError, nearest

FLOAT32 = 1e-6  # relative; sizes are written down as the shortest text of 32-bit numbers
MOST_PRODUCTS = 10**18  # of a kernel; beyond, cycles and bytes are no 64-bit numbers
MOST_CONFIGURATIONS = 1024  # of a graph that has fewer kernels; those without kernels are for nothing
COUNTED = ("", "CMN", "CM", "CN", "C")
# What kernels of each workload exchange; the second collective of language models is that of the sequence.
FIRST: Mapping[str, tuple[schema.CommunicationType, ...]] = MappingProxyType(
    {
        "llm": (schema.ALL_REDUCE, schema.ALL_TO_ALL, schema.ALL_GATHER, schema.ALL_REDUCE_PERIODIC),
        "dlrm": (schema.ALL_TO_ALL, schema.ALL_REDUCE_PERIODIC),
        "hpl": (schema.BROADCAST,),
        "fft": (schema.ALL_TO_ALL,),
    }
)
SECOND: Mapping[str, tuple[schema.CommunicationType, ...]] = MappingProxyType(
    {"llm": (schema.ALL_REDUCE, schema.ALL_GATHER), "dlrm": (), "hpl": (schema.POINT_TO_POINT,), "fft": ()}
)


def check_consistency(message: schema.DSE, where: str) -> None:
    """Check fields that depend on each other, of a message whose fields are right one by one.

    Raises:
        UserError: naming the kernel or the connection, and the field.
    """
    for problem in _problems(message):
        raise UserError(f"{where}: {problem}")


def _problems(message: schema.DSE) -> Iterator[str]:
    yield from _in_execution(message)
    for kernel in message.dataflow_graph.kernels:
        yield from (f"kernel {kernel.name!r}: {found}" for found in _in_kernel(kernel, message.execution))
    yield from _in_order(message)
    yield from _in_operands(message)


def _in_execution(message: schema.DSE) -> Iterator[str]:
    execution, system = message.execution, message.system
    kernels = len(message.dataflow_graph.kernels)
    if execution.execution_style == schema.EXECUTION_STYLE_UNSET:
        yield "field 'execution.execution_style' is unset against DATAFLOW or KERNEL_BY_KERNEL"
    most = max(kernels, MOST_CONFIGURATIONS)
    if execution.num_config > most:
        yield f"field 'execution.num_config': found {execution.num_config} against at most {most}"
    if execution.execution_style == schema.KERNEL_BY_KERNEL and execution.num_config not in (0, kernels):
        yield (
            f"field 'execution.num_config': found {execution.num_config} against the {kernels} kernels of "
            "KERNEL_BY_KERNEL (or DATAFLOW)"
        )
    if execution.optimization not in COUNTED:
        known = ", ".join(COUNTED[1:])
        yield f"field 'execution.optimization': found {execution.optimization!r} against {known} or none"
    if execution.compute_util > 1:
        yield f"field 'execution.compute_util': found {execution.compute_util:g} against at most 1"
    dimensions = len((system.WhichOneof("topology_variant") or "").split("_"))
    if system.HBD and dimensions != 3:
        yield f"field 'system.HBD': found {system.HBD} against none, or a topology of three dimensions"
    llm = execution.llm
    if llm.num_layer_in_graph > 1 and llm.num_layer_in_graph != llm.num_layer:
        yield (
            f"field 'execution.llm.num_layer_in_graph': found {llm.num_layer_in_graph} against 1, or all "
            f"{llm.num_layer} of num_layer"
        )


def _in_kernel(kernel: schema.Kernel, execution: schema.Execution) -> Iterator[str]:
    variant = variant_of(kernel)
    slots = execution.num_config
    if slots and kernel.config >= slots:
        yield f"field 'config': found {kernel.config} against -1 (free) or 0 to {slots - 1}"
    if variant.tiling == schema.TILING_UNSET:
        yield "field 'tiling' is unset against OUTER_TILING, M_TILING, K_TILING, N_TILING, NO_TILING"
    by_k = {"tiling": variant.tiling == schema.K_TILING, "sharding": variant.sharding == schema.K_SHARDING}
    for field in () if isinstance(variant, Gemm) else by_k:
        if by_k[field]:
            yield f"field {field!r}: found K against a dimension of an elementwise kernel"
    shards = execution.HasField("llm") and not execution.skip_inter_chip_optimization
    if shards and variant.tiling == schema.NO_TILING:
        yield "field 'tiling': found NO_TILING against the dimension that is cut into tiles"
    yield from _in_extents(variant, execution)
    if isinstance(variant, schema.GEMM_Input1_Weight):
        if variant.weight_tensor_size:
            yield from _in_size(
                "weight_tensor_size", variant.weight_tensor_size, (variant.outer, variant.M, variant.K), execution
            )
        if variant.use_effective_stage and not execution.effective_stage:
            yield "field 'use_effective_stage' needs field 'execution.effective_stage', found 0"
    kind = execution.WhichOneof("workload_variant") or ""
    yield from _in_communication("communication_type", variant.communication_type, FIRST[kind])
    yield from _in_communication("communication_type_2", variant.communication_type_2, SECOND[kind])
    if bool(variant.communication_type) != bool(variant.communication_size):
        name = schema.CommunicationType.Name(variant.communication_type)
        yield f"field 'communication_size': found {variant.communication_size:g} bytes of type {name}"


def _in_extents(variant: Variant, execution: schema.Execution) -> Iterator[str]:
    extents: tuple[int, ...] = (variant.outer, variant.M, variant.N)
    yield from _in_size("output_tensor_size", variant.output_tensor_size, extents, execution)
    if isinstance(variant, Gemm):
        extents = (variant.outer, variant.M, variant.K, variant.N)
    if math.prod(extents) > MOST_PRODUCTS:
        product = " x ".join(str(extent) for extent in extents)
        yield f"dimensions: found {product} against at most {MOST_PRODUCTS:.0e} elements or products"


def _in_communication(
    field: str, found: schema.CommunicationType, known: tuple[schema.CommunicationType, ...]
) -> Iterator[str]:
    if found and found not in known:
        names = ", ".join(schema.CommunicationType.Name(one) for one in known) or "none"
        yield f"field {field!r}: found {schema.CommunicationType.Name(found)} against {names} of this workload"


def _in_size(field: str, size: float, extents: tuple[int, ...], execution: schema.Execution) -> Iterator[str]:
    expected = math.prod(extents) * execution.word
    if abs(size - expected) > FLOAT32 * expected:
        product = " x ".join(str(extent) for extent in extents)
        yield f"field {field!r}: found {size:.9g} bytes against {product} elements of {execution.word} = {expected:.9g}"


def _in_operands(message: schema.DSE) -> Iterator[str]:
    """Each tensor that enters a product of two tensors is one of them: its size tells which."""
    execution = message.execution
    if not execution.HasField("llm") or execution.skip_inter_chip_optimization:
        return
    kernels = {kernel.id: kernel for kernel in message.dataflow_graph.kernels}
    for connection in message.dataflow_graph.connections:
        producer, consumer = kernels[connection.startIdx], kernels[connection.endIdx]
        product = consumer.gemm_input1_input2
        if not consumer.HasField("gemm_input1_input2"):
            continue
        size = variant_of(producer).output_tensor_size
        operands = (product.input_tensor_1_size, product.input_tensor_2_size)
        if size not in operands:
            yield (
                f"connection {connection.startIdx} to {connection.endIdx}: brings {size:.9g} bytes to kernel "
                f"{consumer.name!r} against its input_tensor_1_size {operands[0]:.9g} or input_tensor_2_size "
                f"{operands[1]:.9g}"
            )


def _in_order(message: schema.DSE) -> Iterator[str]:
    """The forward pass waits for nothing of the backward pass, and configurations ascend.

    The graph has no cycle.
    """
    kernels = {kernel.id: kernel for kernel in message.dataflow_graph.kernels}
    least = {number: kernel.config for number, kernel in kernels.items()}
    slots = message.execution.num_config
    # Given configurations do not count if positions in the file are the order [ko24].
    pinned = message.execution.execution_style != schema.KERNEL_BY_KERNEL and slots not in (0, len(kernels))
    trains = any(kernel.fwd_bwd == schema.BWD for kernel in kernels.values())
    place = {number: position for position, number in enumerate(kernels)}
    edges = [(connection.startIdx, connection.endIdx) for connection in message.dataflow_graph.connections]
    order = topological_order(len(place), [(place[source], place[target]) for source, target in edges])
    rank = {position: number for number, position in enumerate(order)}
    # Connections into a kernel come before those out of it.
    for source, target in sorted(edges, key=lambda edge: rank[place[edge[0]]]):
        kernel = kernels[target]
        if kernels[source].fwd_bwd == schema.BWD and kernel.fwd_bwd != schema.BWD:
            yield (
                f"connection {source} to {target}: leads from the backward pass to kernel {kernel.name!r}, "
                "whose field 'fwd_bwd' is not BWD"
            )
        if pinned and 0 <= kernel.config < least[source]:
            yield (
                f"kernel {kernel.name!r}: field 'config': found {kernel.config} against at least "
                f"{least[source]}, that of a kernel before it"
            )
        least[target] = max(least[target], least[source])
    for kernel in kernels.values() if pinned and trains else ():
        if kernel.fwd_bwd != schema.BWD and kernel.config > (slots - 1) // 2:
            found = f"at most {(slots - 1) // 2} of the forward pass"
        elif kernel.fwd_bwd == schema.BWD and 0 <= kernel.config < slots // 2:
            found = f"at least {slots // 2} of the backward pass"
        else:
            continue
        yield f"kernel {kernel.name!r}: field 'config': found {kernel.config} against {found}"


def pmu_grid_of(message: schema.DSE, where: str) -> PmuGrid | None:
    """Return the memory units of a design; None if it has none and SRAM is one.

    Raises:
        UserError: a field is missing or contradicts another.
    """
    chip, execution = message.system.accelerator, message.execution
    field = "system.accelerator."
    if not chip.pmu:
        return None
    if chip.pmu < 0:
        raise UserError(f"{where}: field '{field}pmu': found {chip.pmu} against a positive number, or 0 for none")
    if execution.compute_util:
        raise UserError(
            f"{where}: field 'execution.compute_util': found {execution.compute_util:g} against 0 where "
            f"{field}pmu is {chip.pmu} (lanes and stages decide how many PMUs a tensor takes; or set pmu to 0)"
        )
    if not chip.pmu_cap > 0:
        raise UserError(f"{where}: field '{field}pmu_cap': found {chip.pmu_cap:g} against a positive number of bytes")
    if execution.turn_off_p_and_r:
        return PmuGrid(chip.pmu, chip.pmu_cap, 0, 0, Placement.NONE)
    _check_board(chip, where)
    if chip.placement not in (Placement.ROWWISE, Placement.DIAGONALWISE):
        hint = nearest(chip.placement, [Placement.ROWWISE.value, Placement.DIAGONALWISE.value])
        raise UserError(
            f"{where}: field '{field}placement': found {chip.placement!r} against 'rowwise' or 'diagonalwise'{hint}"
        )
    return PmuGrid(chip.pmu, chip.pmu_cap, chip.x, chip.y, Placement(chip.placement))


def _check_board(chip: schema.Accelerator, where: str) -> None:
    """Check that a checkerboard has a cell for each unit: PCUs lie where x + y is odd, PMUs where it is even."""
    cells = chip.x * chip.y
    hint = "or execution.turn_off_p_and_r to place nothing"
    if chip.x < 1 or chip.y < 1 or cells != chip.core + chip.pmu:
        raise UserError(
            f"{where}: fields 'system.accelerator.x' and 'y': found {chip.x} x {chip.y} = {cells} cells against "
            f"{chip.core + chip.pmu} = {chip.core} core + {chip.pmu} pmu ({hint})"
        )
    odd = cells // 2
    if chip.core != odd:
        raise UserError(
            f"{where}: fields 'system.accelerator.core' and 'pmu': found {chip.core} and {chip.pmu} against {odd} and "
            f"{cells - odd}, the odd and even cells of a board of {chip.x} x {chip.y} ({hint})"
        )
