"""Design files solved: every output field filled in [ko24]."""

from dfcompile.dfmodel_backend.design_file.message import Gemm, variant_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.evaluate.designs import Decision
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.dfmodel_backend.workload.design import Dim


def solved_message(message: schema.DSE, solution: DesignSolution) -> schema.DSE:
    """Return a copy of a message with the solution: shardings, configurations, topological numbers, depths and sizes.

    Degrees, micro-batch and tile size are filled in where the file left them open. Solving the copy gives the copy.
    """
    solved = schema.DSE()
    solved.CopyFrom(message)
    decision, links = solution.decision, solution.design.machine.links
    model = DesignModel(solution.design, decision.sharding, decision.tiles, solution.options.compatibility)
    _fill_kernels(solved, model, decision)
    _fill_connections(solved, model)
    topology = getattr(solved.system, solution.design.machine.topology)
    for axis, link in zip("wxyz" if len(links) == 4 else "xyz", links, strict=False):  # as files name dimensions
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
        producer, consumer = model.shares[edge.source], model.shares[edge.target]
        connection.buffer_depth = edge.depth
        connection.tensor_size = producer.kernel.output_bytes
        connection.shard_tensor_size = edge.size_bytes
        connection.startName, connection.endName = producer.kernel.name, consumer.kernel.name
        # DFModel writes LANE, the label of elementwise kernels, where the chip has no memory units.
        connection.lane_stage_type = schema.LANE if labels is None else getattr(schema, labels[number].name)
        for collective, _ in edge.exchange:
            connection.communication_type = getattr(schema, collective)
            connection.communication_size = producer.kernel.output_bytes
