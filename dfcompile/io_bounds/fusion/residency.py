"""Which tensors of a graph stay on the chip: exact over orders of the operators and over all sets that fit."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from dfcompile.canonical_dag import TensorRole
from dfcompile.errors import InfeasibleError
from dfcompile.io_bounds.curve import Rules
from dfcompile.io_bounds.operators import BoundedModel

MOST_STATES = 4_000  # of as many operators that are done; above, fewer are looked at, and the result says so


class OperatorShare(Struct, frozen=True):
    """What an operator moves in a plan.

    Attributes:
        name: of the operator.
        traffic_bytes: that it moves.
        free_bytes: of the buffer, beside what is held for others.
    """

    name: str
    traffic_bytes: int
    free_bytes: int


class ResidencyPlan(Struct, frozen=True):
    """An order of the operators and the tensors that stay on the chip from their producer to their last reader.

    Attributes:
        size_bytes: of the buffer.
        traffic_bytes: of all operators.
        kept: names of the tensors, in the order in which they are made.
        operators: in the order of the plan.
        is_exact: whether no other order and no other set of tensors moves less; never of a model whose operators share
            an input or a parameter.
    """

    size_bytes: int
    traffic_bytes: int
    kept: tuple[str, ...]
    operators: tuple[OperatorShare, ...]
    is_exact: bool


class _State(Struct, frozen=True):
    """What was decided: the bytes moved so far, and the last decision with the state before it."""

    traffic: int
    before: "_State | None" = None
    operator: int = -1
    cost: int = 0
    free: int = 0
    made: int = 0  # mask of the tensors that this operator keeps


_Key = tuple[int, int]  # operators that are done, and tensors that are held; both masks
_Layer = dict[_Key, _State]


def least_residency(
    model: BoundedModel, size_bytes: int, rules: Rules, most_states: int = MOST_STATES
) -> ResidencyPlan:
    """Return the plan that moves least with a buffer of ``size_bytes``.

    Operators run one after the other. Each tensor between them either stays on the chip from when it is made until its
    last reader has run, for all its readers at once, or is written and read by each. An operator has what is left
    of the buffer for its tiles. The states are the sets of operators that are done, closed under what they need, with
    the tensors that are held; of equal states the one that moved less goes on. Where there are more than
    ``most_states`` the operators keep their order, and then those states go on that moved least: the plan is one that
    can be run, and says that it is not exact.

    Raises:
        InfeasibleError: the buffer is too small for the smallest tiles of an operator.
    """
    search = _Search(model, size_bytes, rules, most_states)
    layer = search.last_layer(orders=True) or search.last_layer(orders=False)
    assert layer is not None
    return search.plan(layer)


class _Search:
    """The states, layer by layer; a layer has all with as many operators done."""

    def __init__(self, model: BoundedModel, size_bytes: int, rules: Rules, most_states: int) -> None:
        self.model, self.size, self.rules, self.most_states = model, size_bytes, rules, most_states
        self.is_exact = True
        tensors = {tensor.name: tensor for tensor in model.tensors}
        maker = {operand.tensor: at for at, op in enumerate(model.operators) for operand in op.writes}
        self.names = tuple(maker)
        self.number = {name: number for number, name in enumerate(maker)}
        self.sizes = [tensors[name].words * tensors[name].element_bytes for name in maker]
        is_output = [tensors[name].role is TensorRole.OUTPUT for name in maker]
        self.written = [size * is_result for size, is_result in zip(self.sizes, is_output, strict=True)]
        self.readers = [0] * len(maker)
        self.needs = [0] * len(model.operators)
        for at, op in enumerate(model.operators):
            for name in (operand.tensor for operand in op.reads if operand.tensor in maker):
                self.readers[self.number[name]] |= 1 << at
                self.needs[at] |= 1 << maker[name]
        self.memo: dict[tuple[int, int, int], int | None] = {}

    def last_layer(self, *, orders: bool) -> _Layer | None:
        """Return the states after all operators; ``None`` if there are too many on the way for all orders."""
        layer: _Layer = {(0, 0): _State(0)}
        self.is_exact = orders
        free = {0: sum(1 << at for at, needed in enumerate(self.needs) if not needed)}  # of those done, what may follow
        for step in range(len(self.model.operators)):
            following: _Layer = {}
            next_free: dict[int, int] = {}
            for key, state in layer.items():
                for at in _bits(free[key[0]]) if orders else (step,):
                    if orders and (done := key[0] | 1 << at) not in next_free:
                        next_free[done] = self._freed(free[key[0]], at, done)
                    for after, found in self._moves(key, state, at):
                        known = following.get(after)
                        if known is None or found.traffic < known.traffic:
                            following[after] = found
            if not following:
                raise self._too_small(step)
            if len(following) > self.most_states:
                if orders:
                    return None
                best = sorted(following, key=lambda key: (following[key].traffic, key))[: self.most_states]
                following = {key: following[key] for key in best}
            layer, free = following, next_free
        return layer

    def _freed(self, free: int, at: int, done: int) -> int:
        """Return what may follow, after an operator of what may."""
        readers = [self.readers[self.number[operand.tensor]] for operand in self.model.operators[at].writes]
        waiting = {one: self.needs[one] & ~done for mask in readers for one in _bits(mask)}
        return free ^ 1 << at | sum(1 << one for one, needed in waiting.items() if not needed)

    def _moves(self, key: _Key, state: _State, at: int) -> Iterator[tuple[_Key, _State]]:
        """Yield the states after an operator: each set of its results is held that fits."""
        done, held = key[0] | 1 << at, key[1]
        results = [self.number[operand.tensor] for operand in self.model.operators[at].writes]
        keepable = [number for number in results if self.readers[number]]
        for choice in range(1 << len(keepable)):
            made = sum(1 << number for place, number in enumerate(keepable) if choice >> place & 1)
            free = self.size - sum(self.sizes[number] for number in _bits(held | made))
            cost = self._cost(at, held, made, free)
            if cost is not None:
                over = (number for number in _bits(held | made) if self.readers[number] & ~done == 0)
                after = (held | made) & ~sum(1 << number for number in over)
                yield (done, after), _State(state.traffic + cost, state, at, cost, free, made)

    def _cost(self, at: int, held: int, made: int, free: int) -> int | None:
        """Return the bytes that an operator moves with some of its tensors held, and ``free`` bytes for its tiles."""
        op = self.model.operators[at]
        touched = {operand.tensor for operand in (*op.reads, *op.writes)} & self.number.keys()
        kept = (held | made) & sum(1 << self.number[name] for name in touched)
        if free < 0:
            return None
        key = (at, kept, free)
        if key not in self.memo:
            curve = op.curve(self.rules, frozenset(self.names[number] for number in _bits(kept)))
            words = curve.at(free // op.element_bytes)
            written = sum(self.written[number] for number in _bits(made))
            self.memo[key] = None if words is None else words * op.element_bytes + written
        return self.memo[key]

    def _too_small(self, step: int) -> InfeasibleError:
        least = {op.name: op.curve(self.rules).least_size * op.element_bytes for op in self.model.operators}
        name = max(least, key=lambda found: least[found])
        return InfeasibleError(
            f"buffer: {self.size} bytes against {least[name]} bytes that operator {name!r} takes at least",
            limit=f"step {step}",
            enough=least[name],
        )

    def plan(self, layer: _Layer) -> ResidencyPlan:
        """Return the plan of the best last state."""
        state = layer[min(layer, key=lambda key: (layer[key].traffic, key))]
        total, shares, kept = state.traffic, list[OperatorShare](), list[str]()
        while state.before is not None:
            shares.append(OperatorShare(self.model.operators[state.operator].name, state.cost, state.free))
            kept.extend(self.names[number] for number in reversed(list(_bits(state.made))))
            state = state.before
        # Of what none makes and several read, each reads it anew, though it could be held.
        read = Counter(operand.tensor for op in self.model.operators for operand in op.reads)
        is_exact = self.is_exact and all(name in self.number for name, count in read.items() if count > 1)
        return ResidencyPlan(self.size, total, tuple(reversed(kept)), tuple(reversed(shares)), is_exact)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
