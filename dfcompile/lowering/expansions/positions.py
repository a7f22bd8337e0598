"""What positions choose: extrema and where they are, the largest K, one-hot vectors, triangles, running sums."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import is_real
from dfcompile.lowering.operators import Concat
from dfcompile.lowering.operators.elements import kept_shape


def arg_extremum(op: Operator, build: CanonicalFragment) -> None:
    """``Y = the first (or last) i with X[i] == max(X)`` along an axis: two downsamplers."""
    x, y, axis = op.input(0), op.output(), op.axis()
    extremum = Reduction.MAX if op.op_type == "ArgMax" else Reduction.MIN
    is_last = op.integer("select_last_index", 0) != 0
    _position(build, x, y, axis, extremum, is_last=is_last, finds_nan=is_real(x.dtype))


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(arg_extremum) for op_type in ("ArgMax", "ArgMin"))


@onnx_expansion("Hardmax", "map", default=True)
def hardmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i] = 1 if i is the first position of max(X) else 0`` along an axis."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    first = build.array("first", kept_shape(x.shape, [axis]), "int64")
    positions = _position(build, x, first, axis, Reduction.MAX, is_last=False, finds_nan=False)
    build.elementwise("1 if a == b else 0", [first, positions], y, step="mark")


def _position(
    build: CanonicalFragment, x: Tensor, y: Tensor, axis: int, extremum: Reduction, *, is_last: bool, finds_nan: bool
) -> Tensor:
    """Write the position of the extremum to ``y``; return the positions along the axis."""
    shape = tuple(extent if at == axis else 1 for at, extent in enumerate(x.shape))
    build.check_parameter(shape)
    positions = build.parameter("positions", np.arange(x.shape[axis], dtype=np.int64).reshape(shape))
    top = build.reduced("extremum", extremum, [x], [axis])
    # The extremum is NaN if the first element is; then that position is sought, and Hardmax marks none.
    nowhere = 0 if is_last else x.shape[axis]
    found = "a == b or b != b" if finds_nan and not is_last else "a == b"
    choice = Reduction.MAX if is_last else Reduction.MIN
    build.reduce(choice, [x, top, positions], y, [axis], f"c if {found} else {nowhere}", step="position")
    return positions


_FEW_STEPS = 32  # one after another; beyond, elements are ranked, which takes the square of their number
_MOST_STEPS = 256  # several tasks each


def _wanted(op: Operator, build: CanonicalFragment) -> tuple[Tensor, int, bool]:
    """Return the elements as ``[outer, n, inner]``, K, and whether the largest are wanted."""
    x, axis = op.input(0), op.axis(default=-1)
    (k,) = op.static_integers(1, "K") or (0,)
    shape = (prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))
    return build.view(x, "data", shape), k, op.integer("largest", 1) != 0


def _is_short(op: Operator) -> bool:
    k = op.optional_input(1)
    return k is not None and k.value is not None and int(k.value.item()) <= _FEW_STEPS


@onnx_expansion("TopK", "selection", default=_is_short)
def selection(op: Operator, build: CanonicalFragment) -> None:
    """The default if K is 32 or less. K steps take one element each, what comes next after the last: 2 K n reads.

    Each step is two downsamplers: the extremum of what comes after the element before, and the first position of it.
    """
    x, k, is_largest = _wanted(op, build)
    n = x.shape[1]
    op.refuse_if(k > _MOST_STEPS, f"K is {k} against at most {_MOST_STEPS} steps (--expand TopK=rank)")
    kind, sign = (Reduction.MAX, "<") if is_largest else (Reduction.MIN, ">")
    none, finds_nan = kind.initial(x.dtype), is_real(x.dtype)
    positions = build.parameter("positions", np.arange(n, dtype=np.int64).reshape(n, 1))
    values, places = list[Tensor](), list[Tensor]()
    for step in range(k):
        value = build.array("value", (x.shape[0], 1, x.shape[2]))
        place = build.array("place", value.shape, "int64")
        # A NaN at c is found as the place n + c: behind all numbers, each of which is at less than n.
        if step == 0:
            first = f"c if a == b else {n} + c if a != a else {2 * n}" if finds_nan else f"c if a == b else {n}"
            build.reduce(kind, [x], value, [1], f"a if a == a else {none}" if finds_nan else "a", step="value")
            build.reduce(Reduction.MIN, [x, value, positions], place, [1], first, step="place")
        else:
            last, at = values[-1], places[-1]
            left = f"a if a {sign} b or (a == b and c > d) else {none}"
            first = f"c if a == e and (a {sign} b or c > d) else {n}"
            if finds_nan:
                left = f"a if d < {n} and (a {sign} b or (a == b and c > d)) else {none}"
                number = f"c if d < {n} and a == e and (a {sign} b or c > d)"
                first = f"{number} else {n} + c if a != a and {n} + c > d else {2 * n}"
            build.reduce(kind, [x, last, positions, at], value, [1], left, step=f"value{step}")
            build.reduce(Reduction.MIN, [x, last, positions, at, value], place, [1], first, step=f"place{step}")
        values.append(value)
        places.append(place)
    wants_values, wants_places = ([*op.outputs, None][position] is not None for position in (0, 1))
    joined_places = _joined(build, places, "places") if wants_places or finds_nan else None
    joined_values = _joined(build, values, "values") if wants_values else None
    if finds_nan and joined_places is not None:
        if joined_values is not None:
            joined_values = _told(build, f"nan if b >= {n} else a", [joined_values, joined_places], "told_values")
        if wants_places:
            joined_places = _told(build, f"a - {n} if a >= {n} else a", [joined_places], "told_places")
    for found, result in zip((joined_values, joined_places), op.outputs, strict=False):
        if result is not None and found is not None:
            build.view_as(found, result)


def _joined(build: CanonicalFragment, parts: list[Tensor], name: str) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    outer, _, inner = parts[0].shape
    return build.made(name, Concat(1), parts, (outer, len(parts), inner), parts[0].dtype)


def _told(build: CanonicalFragment, source: str, operands: list[Tensor], name: str) -> Tensor:
    """Return results in which what was found behind all numbers is a NaN at its own place."""
    return build.computed(name, source, operands, operands[0].shape, operands[0].dtype)


@onnx_expansion("TopK", "rank", default=True)
def rank(op: Operator, build: CanonicalFragment) -> None:
    """Each of n elements is compared with all others, then result t is the one of rank t: ``n (n + K)`` reads."""
    x, k, is_largest = _wanted(op, build)
    n = x.shape[1]
    along = build.view(x, "along", (x.shape[0], n, 1, x.shape[2]))
    against = build.view(x, "against", (x.shape[0], 1, n, x.shape[2]))
    own = build.parameter("own", np.arange(n, dtype=np.int64).reshape(n, 1, 1))
    other = build.parameter("other", np.arange(n, dtype=np.int64).reshape(n, 1))
    ranks = build.array("rank", x.shape, "int64")
    comes_before = f"b {'>' if is_largest else '<'} a or (b == a and d < c)"
    if is_real(x.dtype):
        comes_before += " or (a != a and (b == b or d < c))"
    build.reduce(Reduction.SUM, [along, against, own, other], ranks, [2], f"1 if {comes_before} else 0", step="rank")
    ranked = build.view(ranks, "ranked", against.shape)
    results = build.parameter("results", np.arange(k, dtype=np.int64).reshape(k, 1, 1))
    for operand, result, name in zip((against, other), op.outputs, ("values", "places"), strict=False):
        if result is not None:
            found = build.array(name, (x.shape[0], k, x.shape[2]), result.dtype)
            build.reduce(Reduction.SUM, [operand, ranked, results], found, [2], "a if b == c else 0", step=name)
            build.view_as(found, result)


@onnx_expansion("OneHot", "map", default=True)
def one_hot(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = on if indices[…] == j else off``: one element-wise task; a negative index counts from the end."""
    indices, y = op.input(0), op.output()
    (depth,) = op.static_integers(1, "depth") or (0,)
    axis = op.axis(default=-1, rank=y.rank)
    build.check_parameter((depth,))
    is_unsigned = np.dtype(indices.dtype).kind == "u"
    positions = build.parameter("positions", np.arange(depth, dtype=indices.dtype if is_unsigned else np.int64))
    is_here = "a == b" if is_unsigned else f"(a == b or a + {depth} == b)"
    parts = [build.part(name, op.input(2), 0, at, at + 1) for at, name in enumerate(("off", "on"))]
    axes = [[at for at in range(y.rank) if at != axis] or [0], [axis], [0], [0]]
    build.elementwise(f"d if {is_here} else c", [indices, positions, *parts], y, axes=axes)


@onnx_expansion("Trilu", "mask", default=True)
def trilu(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, i, j] = X[…, i, j] if j - i >= k else 0`` (upper, else ``<=``): one task with a constant mask."""
    x, y = op.input(0), op.output()
    (diagonal,) = op.static_integers(1, "k") or (0,)
    build.check_parameter(x.shape[-2:])
    rows, columns = (np.arange(extent) for extent in x.shape[-2:])
    distance = columns[None, :] - rows[:, None]
    inside = distance >= diagonal if op.integer("upper", 1) else distance <= diagonal
    build.elementwise("a if b else 0", [x, build.parameter("mask", inside)], y)


def cumulative(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = sum_k X[…, k, …] if k <= j else 0`` along an axis of n: one downsampler that reads X n times.

    A running sum would read X once, but reads what it writes: no access of a canonical task. Products likewise.
    """
    x, y = op.input(0), op.output()
    (given,) = op.static_integers(1, "axis") or (0,)
    axis = op.front_axis(given, x.rank)
    outer, n, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    build.check_parameter((n, n))
    j, k = np.arange(n)[:, None, None], np.arange(n)[None, :, None]
    first, last = (j, k) if op.integer("reverse", 0) else (k, j)
    is_taken = first < last if op.integer("exclusive", 0) else first <= last
    total = build.array("total", (outer, n, inner))
    data = build.view(x, "data", (outer, 1, n, inner))
    reduction = Reduction.SUM if op.op_type == "CumSum" else Reduction.PRODUCT
    taken = f"a if b else {reduction.initial(x.dtype)}"
    build.reduce(reduction, [data, build.parameter("triangle", is_taken)], total, [2], taken)
    build.view_as(total, y)


RUNNING = tuple(onnx_expansion(op_type, "triangle", default=True)(cumulative) for op_type in ("CumSum", "CumProd"))
