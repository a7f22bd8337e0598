"""The audit of the part on traffic: what moves, from the stores of the mapping; the least, from operands and plans."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least, expect_figures
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.errors import VerificationError
from dfcompile.frontend import PACKED_BITS, Program
from dfcompile.io_bounds.fusion.residency import ResidencyPlan
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.report.mapping_figures import TrafficSummary
from dfcompile.study import Point
from dfcompile.traffic_plans import TrafficPlans

# Operators that read every element of their operands, whatever these are.
_READ_ALL: Final = frozenset({
    "Add", "Div", "Erf", "Exp", "MatMul", "Mul", "Neg", "Relu", "Sigmoid", "Softmax", "Sqrt", "Sub", "Tanh",
})  # fmt: skip
_WRITE_IN_PART: Final = frozenset({"Col2Im", "ConvTranspose"})


class TrafficAudit:
    """The audit for one model; what does not depend on the mapping is computed once.

    Attributes:
        proved_bytes: of inputs and parameters that some operator reads, and of outputs, each once.
    """

    def __init__(self, program: Program, plans: TrafficPlans) -> None:
        self._plans = plans
        _expect_words(plans.model, program)
        self.proved_bytes = _compulsory_bytes(plans.model)

    def audit(self, where: str, summary: TrafficSummary | None, point: Point, graph: GraphFigures) -> None:
        """Compute the figures of a mapping anew.

        Raises:
            VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
        """
        if summary is None:
            raise VerificationError(f"{where}: found none against one")
        stores = [store for each in point.attained.configurations for store in each.stores]
        moved = sum(store.dram_read_bytes + store.dram_write_bytes for store in stores)
        moved *= point.attained.chips * point.attained.runs
        size = point.attained.chips * int(point.sram_bytes)
        plan = self._plans.of(size)
        least = None if plan is None else sum(share.traffic_bytes for share in plan.operators)
        buffer = size if size > 0 else None
        is_exact = plan is not None and least is not None and plan.is_exact and least <= moved
        expect_figures(where, summary, moved_bytes=moved, proved_bytes=self.proved_bytes, buffer_bytes=buffer)
        expect_figures(where, summary, least_bytes=least, least_is_exact=is_exact)
        expect_at_least(f"{where}.moved_bytes", moved, self.proved_bytes, "proved_bytes")
        if plan is not None and least is not None:
            expect_at_least(f"{where}.least_bytes", least, self.proved_bytes, "proved_bytes")
            _expect_plan(f"{where}.least_bytes", plan, self._plans, size)
        expect_figures(where, summary, ROUNDING, ratio=moved / least if least else None)
        ratio = point.attained.runs * graph.io_bytes / self.proved_bytes if self.proved_bytes else None
        expect_figures(where, summary, schedule_ratio=ratio)
        self._audit_operators(f"{where}.operators", summary, point, plan)

    def _audit_operators(self, where: str, summary: TrafficSummary, point: Point, plan: ResidencyPlan | None) -> None:
        owner = {name: op.name for op in self._plans.merged.operators for name in (op.name, *op.within)}
        moved, least = Counter[str](), Counter[str]()
        for origin, count in _moved_by_origin(point):
            moved[owner.get(origin, "(other)")] += count
        for share in () if plan is None else plan.operators:
            least[owner[share.name]] += share.traffic_bytes
        for number, row in enumerate(summary.operators):
            own, known = moved.pop(row.operator, 0), least.pop(row.operator, 0)
            expect_figures(f"{where}[{number}]", row, moved_bytes=own, least_bytes=known, excess_bytes=own - known)
        expect(f"{where}: bytes moved by others", 0, sum(moved.values()))
        expect(f"{where}: least bytes of others", 0, sum(least.values()))


def _expect_plan(where: str, plan: ResidencyPlan, plans: TrafficPlans, size_bytes: int) -> None:
    """Run a plan: what is held and the tiles of each operator have to fit into the memory.

    An operator that needs all of its operands moves each of them once if all fit; of others that is the least.

    Args:
        where: path of the figure in the report.
        plan: the plan.
        plans: of the model.
        size_bytes: of the memory; 0: unlimited.

    Raises:
        VerificationError: naming the operator, and what it moves.
    """
    model = plans.merged if len(plan.operators) == len(plans.merged.operators) else plans.model
    operators = {op.name: op for op in model.operators}
    if sorted(share.name for share in plan.operators) != sorted(op.name for op in model.operators):
        raise VerificationError(f"{where}: found a plan of other operators against those of the model")
    if size_bytes:
        expect(f"{where}: size of the plan", plan.size_bytes, size_bytes)
    if len(operators) == len(model.operators):  # with names of their own
        _run_plan(where, plan, model, operators)


def _run_plan(where: str, plan: ResidencyPlan, model: BoundedModel, operators: Mapping[str, BoundedOperator]) -> None:
    size = {tensor.name: tensor.words * tensor.element_bytes for tensor in model.tensors}
    outputs = {tensor.name for tensor in model.tensors if tensor.role is TensorRole.OUTPUT}
    missing = {result.tensor for op in model.operators for result in op.writes}
    waiting = dict.fromkeys(plan.kept, 0)
    for op in model.operators:
        for name in {operand.tensor for operand in op.reads} & set(waiting):
            waiting[name] += 1
    held: set[str] = set()
    for share in plan.operators:
        op, here = operators[share.name], f"{where}: operator {share.name!r}"
        read = {operand.tensor for operand in op.reads}
        if read & missing:
            raise VerificationError(f"{here}: comes before what makes {min(read & missing)!r}")
        made = {result.tensor for result in op.writes}
        missing -= made
        held |= made & set(waiting)
        free = plan.size_bytes - sum(size[name] for name in held)
        expect(f"{here}: bytes that are free", share.free_bytes, free)
        moving = [operand for operand in (*op.reads, *op.writes) if operand.tensor not in waiting]
        least = _bytes(moving, op) + sum(size[name] for name in made & outputs & set(waiting))
        expect_at_least(f"{here}: bytes", share.traffic_bytes, least, "each operand once")
        whole = all(size.get(each.tensor) == _bytes([each], op) for each in (*op.reads, *op.writes))
        if whole and _bytes([*op.reads, *op.writes], op) <= free:
            expect(f"{here}: bytes", share.traffic_bytes, least)
        for name in read & set(waiting):
            waiting[name] -= 1
        held = {name for name in held if waiting[name]}


def _bytes(operands: list[Operand], op: BoundedOperator) -> int:
    return sum(operand.words * operand.units for operand in operands) * op.element_bytes


def _expect_words(model: BoundedModel, program: Program) -> None:
    """Hold words of tensors against the arrays of the program, and those of operands that are read or written whole.

    Raises:
        VerificationError: naming the tensor or the operator.
    """
    sizes = {}  # in bytes, packed where elements are of less than a byte
    for port in (*program.inputs, *program.outputs):
        bits = PACKED_BITS.get(port.dtype, 8 * program.sdfg.arrays[port.array].dtype.bytes)
        sizes[port.array] = -(-prod(port.shape) * bits // 8)
    words = {tensor.name: tensor.words for tensor in model.tensors}
    for tensor in model.tensors:
        if tensor.name in sizes:
            expect(f"tensor {tensor.name!r}: bytes", tensor.words * tensor.element_bytes, sizes[tensor.name])
    varying = {port.array for port in program.inputs}
    for op in model.operators:
        varies = any(operand.tensor in varying for operand in op.reads)
        if varies:
            varying |= {result.tensor for result in op.writes}
        is_read = varies and op.op_type in _READ_ALL  # nothing needs to be read for a result that never changes
        known = [operand for operand in op.reads if operand.tensor in words]  # others are constants that tasks know
        for operand in known:
            where, whole = f"operator {op.name!r}: words read of {operand.tensor!r}", words[operand.tensor]
            if is_read:
                expect(where, operand.words, whole)
            expect_at_least(where, whole, operand.words, "those read")
        for operand in op.writes if op.op_type not in _WRITE_IN_PART else ():
            expect(f"operator {op.name!r}: words written of {operand.tensor!r}", operand.words, words[operand.tensor])


def _compulsory_bytes(model: BoundedModel) -> int:
    """Return the bytes of inputs and parameters that some operator reads, and of outputs, each once.

    From the last operator to the first: what nobody reads of a result need not be made, element by element, and a
    parameter of one word may be part of the program.
    """
    role = {tensor.name: tensor.role for tensor in model.tensors}
    size = {tensor.name: tensor.words for tensor in model.tensors}
    read, written = dict.fromkeys(size, 0), dict(size)
    for op in reversed(model.operators):
        spared = 0
        for result in op.writes:
            written[result.tensor] = result.words
            if op.is_elementwise and role[result.tensor] is not TensorRole.OUTPUT:
                spared += max(size[result.tensor] - read[result.tensor], 0)
        for operand in op.reads:
            read[operand.tensor] = max(read.get(operand.tensor, 0), operand.words - spared)
    least = {TensorRole.OUTPUT: 0, TensorRole.INPUT: 0, TensorRole.PARAMETER: 1}  # fewer words than these are free
    total = 0
    for tensor in model.tensors:
        words = written[tensor.name] if tensor.role is TensorRole.OUTPUT else read[tensor.name]
        if words > least.get(tensor.role, words):
            total += words * tensor.element_bytes
    return total


def _moved_by_origin(point: Point) -> Iterator[tuple[str, int]]:
    """Yield operators with bytes: a store is written for who makes it, and read for the first that needs it."""
    attained = point.attained
    times = attained.chips * attained.runs
    makers, readers = _ends_of_stores(attained.machine_dag)
    origins = {kernel.name: kernel.origin for kernel in attained.machine_dag.kernels}
    for configuration in attained.configurations:
        place: dict[str, int] = {}  # of operators in the configuration
        for at, name in enumerate(configuration.kernels):
            place.setdefault(origins.get(name, ""), at)
        for store in configuration.stores:
            needing = readers.get(store.name, {})  # first in the configuration, else anywhere
            here = min((origin for origin in needing if origin in place), key=place.__getitem__, default=None)
            yield next(iter(needing), "") if here is None else here, store.dram_read_bytes * times
            yield makers.get(store.name, ""), store.dram_write_bytes * times


def _ends_of_stores(dag: CanonicalDag) -> tuple[Mapping[str, str], Mapping[str, Mapping[str, None]]]:
    """Return by name of a store the operator that makes it, and those that read it in the order of the edges."""
    origin = [dag.kernels[scope.kernel].origin if scope.kernel >= 0 else None for scope in dag.scopes]
    ends = (dag.node_scope[ends].tolist() for ends in (dag.edge_source, dag.edge_target))
    pairs = dict.fromkeys(zip(*ends, strict=True))
    makers: dict[str, str] = {}
    readers: dict[str, dict[str, None]] = {}
    for source, target in pairs:
        maker, reader, name = origin[source], origin[target], dag.scopes[source].name
        if maker is not None:
            makers.setdefault(name, maker)
            makers.setdefault(dag.scopes[target].name, maker)
        if reader is not None:
            readers.setdefault(name, {})[reader] = None
    return makers, readers
