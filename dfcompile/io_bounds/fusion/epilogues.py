"""Elementwise operators run as their operand is made: the tensor between never leaves the processing elements."""

from collections import Counter
from math import gcd

from dfcompile.canonical_dag import TensorRole
from dfcompile.errors import InfeasibleError
from dfcompile.io_bounds.curve import Rules
from dfcompile.io_bounds.fusion.residency import MOST_STATES, ResidencyPlan, least_residency
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, Rows
from dfcompile.records import replace


def least_plan(model: BoundedModel, size_bytes: int, rules: Rules, most_states: int = MOST_STATES) -> ResidencyPlan:
    """Return the plan that moves less: `with_epilogues`, or of the operators as they are.

    In a small buffer an operator that runs within another may take the place of a tensor that would be held, so that
    neither is always the better one. The second is looked at only if all tensors between its operators, held for
    nothing, would let it move less.

    Raises:
        InfeasibleError: the buffer is too small for the smallest tiles of an operator, either way.
    """
    merged = with_epilogues(model)
    if len(merged.operators) == len(model.operators):
        return least_residency(model, size_bytes, rules, most_states)
    try:
        found = least_residency(merged, size_bytes, rules, most_states)
    except InfeasibleError:
        return least_residency(model, size_bytes, rules, most_states)
    if _with_all_held(model, size_bytes, rules) >= found.traffic_bytes:
        return found
    try:
        other = least_residency(model, size_bytes, rules, most_states)
    except InfeasibleError:
        return found
    return min(found, other, key=lambda plan: plan.traffic_bytes)


def _with_all_held(model: BoundedModel, size_bytes: int, rules: Rules) -> int:
    """Return what the operators move at least if each has the whole buffer and all that is between them is held."""
    read = {operand.tensor for op in model.operators for operand in op.reads}
    held = frozenset(operand.tensor for op in model.operators for operand in op.writes if operand.tensor in read)
    outputs = [tensor for tensor in model.tensors if tensor.role is TensorRole.OUTPUT and tensor.name in held]
    moved = sum(tensor.words * tensor.element_bytes for tensor in outputs)
    for op in model.operators:
        moved += (op.curve(rules, held).at(size_bytes // op.element_bytes) or 0) * op.element_bytes
    return moved


def with_epilogues(model: BoundedModel) -> BoundedModel:
    """Return a model whose elementwise operators are part of what makes their operand, if they alone read it.

    The result is that of the elementwise operator: a tile of it is what the last visit to a tile of the operand
    leaves. Other operands of it are counted once. The name is that of the first operator.
    """
    readers = Counter(operand.tensor for op in model.operators for operand in op.reads)
    inner = (tensor.name for tensor in model.tensors if tensor.role is TensorRole.INTERMEDIATE)
    single = {name for name in inner if readers[name] == 1}
    groups: list[_Group] = []
    maker: dict[str, int] = {}
    for op in model.operators:
        place = _place(op, maker, single, groups)
        if place is None:
            groups.append(_Group(op))
            place = len(groups) - 1
        else:
            groups[place].add(op)
        maker |= dict.fromkeys((operand.tensor for operand in op.writes), place)
    if len(groups) == len(model.operators):
        return model
    return replace(model, operators=_in_order([group.operator() for group in groups]))


class _Group:
    """An operator and the elementwise ones that are part of it so far: thousands may follow one another.

    Attributes:
        first: the operator.
        element_bytes: of a unit.
        reads: of all of them together, first those of the first operator.
        writes: of the last one.
    """

    def __init__(self, first: BoundedOperator) -> None:
        self.first = first
        self.element_bytes = first.element_bytes
        self.reads = list(first.reads)
        self.writes = first.writes
        self._within = list(first.within)
        self._read_at = {operand.tensor: at for at, operand in reversed(list(enumerate(self.reads)))}

    def words_of(self, tensor: str, otherwise: int) -> int:
        """Return the words that are read of a tensor, if it is read."""
        return self.reads[self._read_at[tensor]].words if tensor in self._read_at else otherwise

    def add(self, last: BoundedOperator) -> None:
        """Let an elementwise operator that alone reads the result be a part."""
        unit = gcd(self.element_bytes, last.element_bytes)
        own, times = self.element_bytes // unit, last.element_bytes // unit
        if own != 1:
            self.reads = [replace(each, units=each.units * own) for each in self.reads]
        result = self.writes[0].tensor
        for operand in last.reads:
            at = self._read_at.get(operand.tensor)
            if at is not None:
                self.reads[at] = replace(self.reads[at], words=max(self.reads[at].words, operand.words))
            elif operand.tensor != result:
                self._read_at[operand.tensor] = len(self.reads)
                self.reads.append(replace(operand, units=operand.units * times))
        self.writes = tuple(replace(each, units=each.units * times) for each in last.writes)
        self._within += [last.name, *last.within]
        self.element_bytes = unit

    def operator(self) -> BoundedOperator:
        """Return all of them as one."""
        reads, within = tuple(self.reads), tuple(self._within)
        return replace(self.first, reads=reads, writes=self.writes, within=within, element_bytes=self.element_bytes)


def _place(op: BoundedOperator, maker: dict[str, int], single: set[str], groups: list[_Group]) -> int | None:
    """Return the operator that an elementwise one becomes a part of."""
    if op.shape != Rows() or len(op.writes) != 1:
        return None
    for operand in op.reads:
        place = maker.get(operand.tensor)
        if place is not None and operand.tensor in single and operand.words == op.writes[0].words:
            before = groups[place]
            word_bytes = op.writes[0].units * op.element_bytes
            is_alike = [each.units * before.element_bytes for each in before.writes] == [word_bytes]
            if is_alike and (before.first.shape == Rows() or not _reads_more(op, before)):
                return place
    return None


def _reads_more(op: BoundedOperator, before: _Group) -> bool:
    """Return whether an operator reads more of an operand than another one whose shape says what it reads of it."""
    return any(operand.words > before.words_of(operand.tensor, operand.words) for operand in op.reads)


def _in_order(operators: list[BoundedOperator]) -> tuple[BoundedOperator, ...]:
    """Return operators such that each comes after those whose results it reads, else in their order."""
    maker = {operand.tensor: at for at, op in enumerate(operators) for operand in op.writes}
    import networkx as nx  # takes a tenth of a second

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(operators)))
    reads = ((at, operand.tensor) for at, op in enumerate(operators) for operand in op.reads)
    graph.add_edges_from((at, maker[tensor]) for at, tensor in reads if maker.get(tensor, at) != at)
    return tuple(operators[at] for at in nx.dfs_postorder_nodes(graph))
