"""The audit of a plan of least traffic: that it can be run, and that each operator moves what it moves at least."""

from collections.abc import Mapping

from dfcompile.audit.comparing import expect, expect_at_least
from dfcompile.bounds.fusion.residency import ResidencyPlan
from dfcompile.bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.canonical_dag import TensorRole
from dfcompile.errors import VerificationError
from dfcompile.traffic_plans import TrafficPlans


def expect_plan(where: str, plan: ResidencyPlan, plans: TrafficPlans, size_bytes: int) -> None:
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
        _run(where, plan, model, operators)


def _run(where: str, plan: ResidencyPlan, model: BoundedModel, operators: Mapping[str, BoundedOperator]) -> None:
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
