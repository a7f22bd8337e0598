"""Plans of small graphs against force: every order, every set of tensors that is kept."""

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import TensorRole
from dfcompile.errors import InfeasibleError
from dfcompile.io_bounds.curve import Rules
from dfcompile.io_bounds.einsum.convolution import Convolution, Pooling
from dfcompile.io_bounds.einsum.plain import gemm
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.fusion.epilogues import least_plan, with_epilogues
from dfcompile.io_bounds.fusion.residency import least_residency
from dfcompile.io_bounds.operators import BoundedModel, BoundedOperator, BoundedTensor, Operand, Rows
from tests.examples import examples

ROWS = 4
RULES = Rules()


@st.composite
def models(draw: st.DrawFn) -> BoundedModel:
    """Graphs of products with weights, softmax and elementwise operators: residuals, several readers."""
    widths = {"x": draw(st.integers(1, 6))}
    tensors = [BoundedTensor("x", ROWS * widths["x"], 2, TensorRole.INPUT)]
    operators: list[BoundedOperator] = []
    count = draw(st.integers(1, 6))
    read: set[str] = set()
    for number in range(count):
        source = draw(st.sampled_from(sorted(widths)))
        same = sorted(name for name, width in widths.items() if width == widths[source] and name != source)
        result = f"t{number}"
        kind = draw(st.sampled_from(("product", "elementwise", "softmax")))
        operands = [Operand(source, ROWS * widths[source])]
        width = widths[source]
        if kind == "product":
            width = draw(st.integers(1, 6))
            operands.append(Operand(f"w{number}", widths[source] * width))
            tensors.append(BoundedTensor(f"w{number}", widths[source] * width, 2, TensorRole.PARAMETER))
        elif kind == "elementwise" and same:
            operands.append(Operand(draw(st.sampled_from(same)), ROWS * width))
        read |= {operand.tensor for operand in operands}
        shape = (
            gemm(ROWS, widths[source], width)
            if kind == "product"
            else Rows(width, passes=2)
            if kind == "softmax"
            else Rows()
        )
        operators.append(BoundedOperator(result, kind, 1, shape, tuple(operands), (Operand(result, ROWS * width),), 2))
        widths[result] = width
    for op in operators:
        name = op.writes[0].tensor
        role = TensorRole.INTERMEDIATE if name in read and draw(st.integers(0, 4)) else TensorRole.OUTPUT
        tensors.append(BoundedTensor(name, op.writes[0].words, 2, role))
    return BoundedModel("m", tuple(operators), tuple(tensors))


def by_force(model: BoundedModel, size: int) -> int | None:
    """The least bytes, by all orders and all sets of kept tensors."""
    read = {operand.tensor for op in model.operators for operand in op.reads}
    sizes = {tensor.name: tensor.words * tensor.element_bytes for tensor in model.tensors}
    outputs = {tensor.name for tensor in model.tensors if tensor.role is TensorRole.OUTPUT}
    made = [op.writes[0].tensor for op in model.operators]
    candidates = [name for name in made if name in read]
    least = None
    for order in permutations(model.operators):
        place = {op.writes[0].tensor: at for at, op in enumerate(order)}
        if any(place.get(operand.tensor, -1) >= at for at, op in enumerate(order) for operand in op.reads):
            continue
        lasts = {
            name: max(at for at, op in enumerate(order) if any(operand.tensor == name for operand in op.reads))
            for name in candidates
        }
        for count in range(len(candidates) + 1):
            for kept in combinations(candidates, count):
                moved: int | None = sum(sizes[name] for name in kept if name in outputs)
                for at, op in enumerate(order):
                    held = sum(sizes[name] for name in kept if place[name] <= at <= lasts[name])
                    words = op.curve(RULES, frozenset(kept)).at((size - held) // 2) if size >= held else None
                    if words is None or moved is None:
                        moved = None
                        break
                    moved += words * 2
                if moved is not None and (least is None or moved < least):
                    least = moved
    return least


@given(models(), st.integers(6, 300))
@examples(200)
def test_plans_of_small_graphs_move_what_force_finds(model: BoundedModel, size: int) -> None:
    expected = by_force(model, size)
    if expected is None:
        with pytest.raises(InfeasibleError, match="takes at least"):
            least_residency(model, size, RULES)
        return
    plan = least_residency(model, size, RULES)

    made = {operand.tensor for op in model.operators for operand in op.writes}
    inputs = [operand.tensor for op in model.operators for operand in op.reads if operand.tensor not in made]

    assert plan.traffic_bytes == expected
    assert plan.is_exact is (len(inputs) == len(set(inputs)))  # an input that several read could be held
    assert sum(share.traffic_bytes for share in plan.operators) == plan.traffic_bytes


@given(models(), st.integers(6, 300))
@examples(200)
def test_of_elementwise_operators_within_others_and_by_themselves_what_moves_less(
    model: BoundedModel, size: int
) -> None:
    merged = with_epilogues(model)
    found = [moved for moved in (by_force(model, size), by_force(merged, size)) if moved is not None]
    if not found:
        with pytest.raises(InfeasibleError, match="takes at least"):
            least_plan(model, size, RULES)
        return

    assert least_plan(model, size, RULES).traffic_bytes == min(found)
    names = [op.name for op in merged.operators]
    assert len(set(names)) == len(names)


@given(words=st.lists(st.integers(0, 3), min_size=2, max_size=5), is_window=st.booleans())
def test_no_plan_moves_less_than_what_is_read_at_least(words: list[int], *, is_window: bool) -> None:
    """Of a chain that reads a parameter step by step, each in part, the first may be windows, which say what they read.

    All of it runs within the first, and reads what the step reads that reads most.
    """
    names = [f"t{number}" for number in range(len(words))]
    operators = [
        BoundedOperator(
            name,
            "step",
            1,
            Pooling(Convolution(1, 1, 1, 1, (WindowAxis(3, 1, 1, 1, 0, 3),))) if is_window and not before else Rows(),
            (*before, Operand("p", part)) if before else (Operand("p", 3 if is_window else part),),
            (Operand(name, 3),),
            4,
        )
        for name, before, part in zip(names, [(), *((Operand(name, 3),) for name in names[:-1])], words, strict=True)
    ]
    tensors = [BoundedTensor(name, 3, 4, TensorRole.INTERMEDIATE) for name in names[:-1]]
    tensors += [BoundedTensor("p", 3, 4, TensorRole.PARAMETER), BoundedTensor(names[-1], 3, 4, TensorRole.OUTPUT)]
    model = BoundedModel("chain", tuple(operators), tuple(tensors))

    assert least_plan(model, 10_000, RULES).traffic_bytes >= model.compulsory_bytes
