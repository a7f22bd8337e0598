"""Reads DFModel design files, text or binary."""

import math
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.consistency import check_consistency, pmu_grid_of
from dfcompile.dfmodel_backend.design_file.message import Gemm, parse_message, read_message, variant_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.machine.system import Collective, LaneStage, Link, Machine, Prices
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload import design as workload
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.dfmodel_backend.workload.graph import topological_order
from dfcompile.errors import UserError


def read_design(path: Path) -> Design:
    """Read a design file, text or binary, of any age that is understood.

    Raises:
        UserError: the file cannot be read or parsed, or a field is unknown, missing or contradicts another.
    """
    return design_of(read_message(path), str(path))


def parse_design(text: str, where: str) -> Design:
    """Parse the text form; ``where`` names it in errors.

    Raises:
        UserError: as `read_design`.
    """
    return design_of(parse_message(text, where), where)


def design_of(message: schema.DSE, where: str) -> Design:
    """Check a parsed message and convert it.

    Raises:
        UserError: a required field is unset, or fields contradict each other.
    """
    check_values(message, where)
    kernels = tuple(_kernel(kernel, where) for kernel in message.dataflow_graph.kernels)
    if not kernels:
        raise UserError(f"{where}: field 'dataflow_graph.kernels': found none against at least one")
    known: dict[int, int] = {}  # positions by id
    for number, kernel in enumerate(kernels):
        if known.setdefault(kernel.id, number) != number:
            raise UserError(f"{where}: kernel {kernel.name!r}: its id is taken by another kernel")
    edges: dict[tuple[int, int], workload.DesignEdge] = {}
    for edge in message.dataflow_graph.connections:
        ends = (edge.startIdx, edge.endIdx)
        for end in ends:
            if end not in known:
                raise UserError(f"{where}: connection {edge.id}: no kernel with id {end}")
        if edge.startIdx == edge.endIdx:
            raise UserError(f"{where}: connection {edge.id}: from kernel {edge.startIdx} to itself")
        if ends in edges:
            raise UserError(f"{where}: connection {edge.id}: {ends[0]} to {ends[1]} is there twice")
        label = LaneStage[schema.LaneStage.Name(edge.lane_stage_type)] if edge.lane_stage_type else None
        edges[ends] = workload.DesignEdge(*ends, edge.zero_out, label)
    ordered = topological_order(len(kernels), [(known[source], known[target]) for source, target in edges])
    if len(ordered) < len(kernels):
        stuck = kernels[min(set(range(len(kernels))) - set(ordered))]
        raise UserError(f"{where}: kernel {stuck.name!r}: part of, or behind, a cycle of connections (remove one)")
    machine, execution = _machine(message, where), _execution(message.execution, where)
    check_consistency(message, where)
    return Design(kernels, tuple(edges.values()), machine, execution)


_DIMS = (Dim.NONE, Dim.OUTER, Dim.M, Dim.K, Dim.N, Dim.NONE)


def _kernel(kernel: schema.Kernel, where: str) -> workload.DesignKernel:
    field = kernel.WhichOneof("kernel_variant")
    if field is None:
        raise UserError(f"{where}: kernel {kernel.name!r}: no variant against {', '.join(KernelVariant)}")
    if kernel.type == schema.KERNEL_TYPE_UNSET:
        raise UserError(f"{where}: kernel {kernel.name!r}: field 'type' is unset against SYSTOLIC or SIMD")
    part = variant_of(kernel)
    k = part.K if isinstance(part, Gemm) else 1
    if isinstance(part, schema.GEMM_Input1_Input2 | schema.Elementwise_Input1_Input2):
        inputs = (part.input_tensor_1_size, part.input_tensor_2_size)
    else:
        inputs = (part.input_tensor_size, 0.0)
    weighted = part if isinstance(part, schema.GEMM_Input1_Weight) else schema.GEMM_Input1_Weight()
    for name, extent in (("outer", part.outer), ("M", part.M), ("K", k), ("N", part.N)):
        if extent < 1:
            raise UserError(f"{where}: kernel {kernel.name!r}: field {name!r}: found {extent} against at least 1")
    return workload.DesignKernel(
        name=kernel.name,
        id=kernel.id,
        pinned_config=kernel.config,
        backward=None if kernel.fwd_bwd == schema.FWD_BWD_UNSET else kernel.fwd_bwd == schema.BWD,
        systolic=kernel.type == schema.SYSTOLIC,
        variant=KernelVariant(field),
        outer=part.outer,
        m=part.M,
        k=k,
        n=part.N,
        input_1_bytes=inputs[0],
        input_2_bytes=inputs[1],
        output_bytes=part.output_tensor_size,
        tiling=_DIMS[part.tiling],
        collective=Collective(schema.CommunicationType.Name(part.communication_type)),
        collective_bytes=part.communication_size,
        collective_2=Collective(schema.CommunicationType.Name(part.communication_type_2)),
        memory_bytes=part.memory_size,
        skip_weight=weighted.skip_weight,
        use_effective_stage=weighted.use_effective_stage,
        num_input=part.num_input,
        sram_extra_bytes=part.sram_extra,
        dram_extra_bytes=part.dram_extra,
        pinned_sharding=None if part.sharding == schema.SHARDING_UNSET else _DIMS[part.sharding],
    )


def _machine(message: schema.DSE, where: str) -> Machine:
    system, cost = message.system, message.cost
    chip = system.accelerator
    topology = system.WhichOneof("topology_variant")
    if topology is None:
        raise UserError(f"{where}: field 'system': no topology against r, sw, fc, r_r, …")
    of_chip = ("core", "systolic_width", "systolic_height", "freq")
    positive = {f"system.accelerator.{field}": getattr(chip, field) for field in of_chip}
    positive = {"system.num_chip": system.num_chip, **positive, "system.memory.dram_bw": system.memory.dram_bw}
    for field, value in positive.items():
        if not value > 0:
            raise UserError(f"{where}: field {field!r}: found {value} against a positive number")
    for field in ("second_dram_bw", "second_dram_cap"):
        if value := getattr(system.memory, field):
            raise UserError(
                f"{where}: field 'system.memory.{field}': found {value:g} against none: chips have one memory"
            )
    powers = (cost.link_unit_power_x, cost.link_unit_power_y, cost.link_unit_power_z)
    return Machine(
        chips=system.num_chip,
        cores=chip.core,
        lanes_per_core=chip.systolic_width,
        stages_per_core=chip.systolic_height,
        frequency_ghz=chip.freq,
        sram_bytes=chip.sram_cap,
        dram_gb_per_s=system.memory.dram_bw,
        dram_bytes=system.memory.dram_cap,
        link_latency_ns=chip.link_latency,
        domain_chips=system.HBD,
        topology=topology,
        links=_links(system, topology, powers, where),
        prices=Prices(
            accelerator_usd=cost.accelerator_price,
            accelerator_w=cost.accelerator_power,
            dram_usd_per_gb_per_s=cost.dram_unit_price,
            dram_w_per_gb_per_s=cost.dram_unit_power,
            link_usd_per_gb_per_s=cost.link_unit_price,
            switch_usd_per_gb_per_s=cost.switch_unit_price,
            switch_w_per_gb_per_s=cost.switch_unit_power,
        ),
        pmu=pmu_grid_of(message, where),
    )


def _links(system: schema.System, topology: str, powers: tuple[float, ...], where: str) -> tuple[Link, ...]:
    variant = getattr(system, topology)
    shapes = topology.split("_")
    axes = "wxyz" if len(shapes) == len("wxyz") else "xyz"
    links = []
    for axis, shape, power in zip(axes, shapes, (*powers, powers[-1]), strict=False):
        bandwidth = float(getattr(variant, f"link_bw_{axis}"))
        if not bandwidth > 0:
            raise UserError(f"{where}: field 'system.{topology}.link_bw_{axis}': found {bandwidth} against a positive")
        links.append(Link(shape, int(getattr(variant, axis)), bandwidth, str(getattr(variant, f"par_{axis}")), power))
    return tuple(links)


def _execution(execution: schema.Execution, where: str) -> workload.Execution:
    if not execution.overlap:
        raise UserError(f"{where}: field 'execution.overlap' is unset against {', '.join(Overlap)}")
    if execution.word < 1:
        raise UserError(f"{where}: field 'execution.word': found {execution.word} against at least 1 byte")
    return workload.Execution(
        batch=_batch(execution, where),
        kernel_by_kernel=execution.execution_style == schema.KERNEL_BY_KERNEL,
        configurations=execution.num_config,
        overlap=Overlap(schema.OverlapMode.Name(execution.overlap)),
        compute_utilization=execution.compute_util,
        word_bytes=execution.word,
        effective_stage=execution.effective_stage,
        separate_reduce_scatter=execution.separate_rs_ag_for_ar,
        skip_inter_chip=execution.skip_inter_chip_optimization,
        # The original leaves parts out of sums alone.
        counted=(execution.optimization or "CMN") if execution.overlap == schema.NO_OVERLAP else "CMN",
    )


def _batch(execution: schema.Execution, where: str) -> workload.Batch:
    kind = execution.WhichOneof("workload_variant")
    if kind == "llm":
        llm = execution.llm
        _require("llm", where, seq_len=llm.seq_len, num_layer=llm.num_layer, hidden_dim=llm.hidden_dim)
        if llm.num_head * llm.head_dim != llm.hidden_dim:
            raise UserError(
                f"{where}: field 'execution.llm.hidden_dim': found {llm.hidden_dim} against "
                f"num_head x head_dim = {llm.num_head * llm.head_dim}"
            )
        if llm.global_batch_size < 1:
            raise UserError(f"{where}: field 'execution.llm.global_batch_size' is unset")
        return workload.Batch(
            kind=workload.WorkloadKind.LLM,
            hidden=llm.hidden_dim,
            sequence=llm.seq_len,
            layers=llm.num_layer,
            layers_in_graph=max(1, llm.num_layer_in_graph),
            global_batch=llm.global_batch_size,
            micro_batch=llm.micro_batch_size,
            tile=llm.tile_size,
        )
    batch, copies, elements = 1, 1, 0
    if kind == "dlrm":
        dlrm = execution.dlrm
        _require("dlrm", where, num_table=dlrm.num_table, emb_dim=dlrm.emb_dim, row=dlrm.row)
        batch, copies, elements = dlrm.global_batch_size, dlrm.num_copy, dlrm.num_table * dlrm.row * dlrm.emb_dim
    elif kind == "hpl":
        _require("hpl", where, n=execution.hpl.n, b=execution.hpl.b)
        copies, elements = execution.hpl.num_copy, execution.hpl.n**2
    elif kind == "fft":
        _require("fft", where, length=execution.fft.length)
        copies, elements = execution.fft.num_copy, execution.fft.length
    else:
        raise UserError(
            f"{where}: field 'execution': found {kind or 'no workload'} against llm (also for Mamba), dlrm, hpl, fft"
        )
    if batch < 1:
        raise UserError(f"{where}: field 'execution.{kind}.global_batch_size' is unset")
    table_bytes = float(elements * execution.word)
    return workload.Batch(
        workload.WorkloadKind(kind), global_batch=batch, copies=max(1, copies), table_bytes=table_bytes
    )


def _require(kind: str, where: str, **fields: int) -> None:
    for field, value in fields.items():
        if value < 1:
            raise UserError(f"{where}: field 'execution.{kind}.{field}': found {value} against at least 1")


# Least values of whole numbers; 0 for the others.
_LEAST = {("Kernel", "config"): -1}
# Most that can be searched or summed exactly; 0 for no limit but that of 64 bits.
_MOST = {
    ("System", "num_chip"): 2**24,
    ("Accelerator", "core"): 2**22,
    ("LLM", "seq_len"): 2**24,
    ("LLM", "global_batch_size"): 2**40,
}
_MOST_OF_ALL = 2**62


def check_values(message: schema.DSE, where: str) -> None:
    """Check the value of every field that is set.

    Raises:
        UserError: naming the kernel or connection and the field.
    """
    for number, kernel in enumerate(message.dataflow_graph.kernels, start=1):
        _check(kernel, f"{where}: kernel {kernel.name!r}" if kernel.name else f"{where}: kernel number {number}", "")
    for number, connection in enumerate(message.dataflow_graph.connections, start=1):
        _check(connection, f"{where}: connection {connection.id or f'number {number}'}", "")
    for part in ("system", "cost", "execution", "gurobi"):
        _check(getattr(message, part), where, f"{part}.")


def _check(message: Message, where: str, path: str) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            _check(value, where, path if path == "" else f"{path}{field.name}.")
            continue
        for problem in _problems(field, value):
            raise UserError(f"{where}: field '{path}{field.name}': {problem}")


def _problems(field: FieldDescriptor, value: object) -> Iterator[str]:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number
        if value not in known:
            names = ", ".join(one.name for number, one in known.items() if number)
            yield f"found the number {value} against {names}"
    elif isinstance(value, str):
        if not value.isprintable():  # names stand in errors, tables and pictures
            yield f"found {value!r} against printable characters"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"found {value} against a finite 32-bit number"
        elif value < 0:
            yield f"found {value:g} against at least 0"
    elif isinstance(value, int):
        key = (field.containing_type.name if field.containing_type else "", field.name)
        least, most = _LEAST.get(key, 0), _MOST.get(key, _MOST_OF_ALL)
        if not least <= value <= most:
            yield f"found {value} against {f'at least {least}' if value < least else f'at most {most}'}"
