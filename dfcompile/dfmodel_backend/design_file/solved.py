"""Design files solved: with whichever memories are fastest, and with every output field filled in [ko24].

One age of files has chips with a second memory behind the first. What fits the first memory is in it alone. Otherwise
both are one memory of the sum of their capacities, whose bandwidth is the mean of theirs, weighted with their
capacities.
"""

from dfcompile.dfmodel_backend.design_file.message import Gemm, variant_of
from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.evaluate.designs import Decision
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace


def solved_message(message: schema.DSE, solution: DesignSolution) -> schema.DSE:
    """Return a copy of a message with what was solved: shardings, shards, configurations, numbers, depths, sizes.

    Degrees, micro-batch and tile size are filled in where the file left them open. Solving the copy gives the copy.
    """
    solved = schema.DSE()
    solved.CopyFrom(message)
    decision, links = solution.decision, solution.design.machine.links
    model = DesignModel(solution.design, decision.sharding, decision.tiles, solution.options.compatibility)
    _fill_kernels(solved, model, decision)
    _fill_connections(solved, model)
    topology = getattr(solved.system, solution.design.machine.topology)
    for axis, link in zip("wxyz" if len(links) == 4 else "xyz", links, strict=False):
        setattr(topology, axis, link.chips)
    if solved.execution.WhichOneof("workload_variant") == "llm":
        llm = solved.execution.llm
        llm.micro_batch_size = max(1, solution.design.execution.batch.micro_batch)
        if decision.tiles > 1 and not llm.tile_size:
            llm.tile_size = -(-llm.seq_len // decision.tiles)
    return solved


def _fill_kernels(solved: schema.DSE, model: DesignModel, decision: Decision) -> None:
    position = {share.kernel.id: number for number, share in enumerate(model.shares)}
    levels = model.design.levels
    for kernel in solved.dataflow_graph.kernels:
        number = position[kernel.id]
        share = model.shares[number]
        kernel.topological_number = levels[number]
        kernel.config = decision.configs[kernel.id]
        variant = variant_of(kernel)
        split = "NO" if share.sharding is Dim.NONE else share.sharding.name
        variant.sharding = getattr(schema, f"{split}_SHARDING")
        variant.shard_outer_M, variant.shard_N = share.work.rows, share.work.n
        if isinstance(variant, Gemm):
            variant.shard_K = share.work.k
        if share.kernel.collective is Collective.NONE and Collective.ALL_REDUCE in dict(share.exchange):
            variant.communication_type = schema.ALL_REDUCE
            variant.communication_size = variant.output_tensor_size


def _fill_connections(solved: schema.DSE, model: DesignModel) -> None:
    labels = None if model.pmu is None else model.pmu.labels
    connections = solved.dataflow_graph.connections
    for number, (connection, edge) in enumerate(zip(connections, model.edges, strict=True)):
        giver, taker = model.shares[edge.source], model.shares[edge.target]
        connection.buffer_depth = edge.depth
        connection.tensor_size = giver.kernel.output_bytes
        connection.shard_tensor_size = edge.size_bytes
        connection.startName, connection.endName = giver.kernel.name, taker.kernel.name
        # The original writes the label of an elementwise kernel where nothing is spread.
        connection.lane_stage_type = schema.LANE if labels is None else getattr(schema, labels[number].name)
        for collective, _ in edge.exchange:
            connection.communication_type = getattr(schema, collective)
            connection.communication_size = giver.kernel.output_bytes


def solve_message(message: schema.DSE, where: str, options: DesignOptions) -> DesignSolution:
    """Solve a design file with whichever memories give the least time.

    Raises:
        UserError: fields contradict each other.
        InfeasibleError: nothing fits, in both memories together.
    """
    designs = memory_choices(message, where)
    found: list[DesignSolution] = []
    for design in designs:
        try:
            found.append(solve_design(design, options))
        except InfeasibleError:
            if design is designs[-1] and not found:
                raise
    # The sum of both is slower: what fits the first memory alone is never better there.
    return min(found, key=lambda solution: solution.figures.batch_ns)


def memory_choices(message: schema.DSE, where: str) -> tuple[Design, ...]:
    """Return a design with the first memory alone and, if there is a second one, with both as one.

    Raises:
        UserError: as `design_of`; or a second memory that is no slower one behind a limited first.
    """
    memory = message.system.memory
    if not memory.second_dram_bw and not memory.second_dram_cap:
        return (design_of(message, where),)
    for field in ("dram_cap", "second_dram_cap", "second_dram_bw"):
        if not getattr(memory, field) > 0:
            raise UserError(
                f"{where}: field 'system.memory.{field}': found {getattr(memory, field):g} against more than 0, with a "
                "second memory"
            )
    if memory.second_dram_bw > memory.dram_bw:
        raise UserError(
            f"{where}: field 'system.memory.second_dram_bw': found {memory.second_dram_bw:g} against at most dram_bw "
            f"{memory.dram_bw:g} (the first memory is the fast one)"
        )
    single = schema.DSE()
    single.CopyFrom(message)
    single.system.memory.ClearField("second_dram_bw")
    single.system.memory.ClearField("second_dram_cap")
    first = design_of(single, where)
    capacity = memory.dram_cap + memory.second_dram_cap
    bandwidth = memory.dram_cap * memory.dram_bw + memory.second_dram_cap * memory.second_dram_bw
    machine = replace(first.machine, dram_bytes=capacity, dram_gb_per_s=bandwidth / capacity)
    return first, replace(first, machine=machine)
