"""Systems of equations by Gauss-Jordan elimination with exchange of rows."""

from collections.abc import Mapping, Sequence

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, expansion
from dfcompile.lowering.expressions import real_type
from dfcompile.lowering.operators import Eliminate
from dfcompile.lowering.tensor import Tensor


@expansion(Eliminate, "gauss-jordan", source="higham02", default=True)
def gauss_jordan(op: CanonicalNode[Eliminate], build: MapFragment) -> None:
    """Per column: the largest element is sought, its row changes place with the first one left and off all others.

    What is kept are the columns that are left beside the right-hand sides; four scopes per column, one task per matrix
    and scope. A matrix without a pivot gives NaN.
    """
    a, b, x = op.input(0), op.input(1), op.output()
    rows, columns = b.shape[-2:]
    spatial = {f"n{axis}": extent for axis, extent in enumerate(a.shape[:-2])}
    state = _joined(a, b, build, spatial)
    for k in range(rows):
        place = _pivot_place(state, build, spatial, k)
        row = _pivot_row(state, place, build, spatial, k)
        width = rows + columns - k - 1
        target = x if k == rows - 1 else build.array(f"left{k + 1}", (*a.shape[:-2], rows, width))
        _eliminated(state, (place, row), target, build, spatial, k)
        state = target


def _joined(a: Tensor, b: Tensor, build: MapFragment, spatial: Mapping[str, int]) -> Tensor:
    """Return ``[A | B]``."""
    lead = list(spatial)
    rows, columns = b.shape[-2:]
    joined = build.array("joined", (*a.shape[:-2], rows, rows + columns))
    build.map(
        "matrix",
        spatial=spatial,
        loops={"i": rows, "j": rows},
        reads={"a": (a, [*lead, "i", "j"])},
        write=(joined, [*lead, "i", "j"]),
        code="a",
    )
    build.map(
        "sides",
        spatial=spatial,
        loops={"i": rows, "j": columns},
        reads={"b": (b, [*(lead if b.rank > 2 else []), "i", "j"])},
        write=(joined, [*lead, "i", f"j + {rows}"]),
        code="b",
    )
    return joined


def _pivot_place(state: Tensor, build: MapFragment, spatial: Mapping[str, int], k: int) -> Tensor:
    """Return the number of the row with the pivot: the first of the largest elements from row k on."""
    lead, left = list(spatial), state.shape[-2] - k
    shape, at = tuple(spatial.values()) or (1,), lead or ["0"]
    largest = build.array(f"largest{k}", shape, real_type(state.dtype))
    place = build.array(f"place{k}", shape, "int64")
    candidate = (state, [*lead, f"i + {k}", "0"])
    build.map(
        f"largest{k}",
        spatial=spatial,
        loops={"i": left},
        reads={"a": candidate},
        write=(largest, at),
        code="abs(a)",
        accumulate=Reduction.MAX,
    )
    build.map(
        f"place{k}",
        spatial=spatial,
        loops={"i": left},
        reads={"a": candidate, "m": (largest, at)},
        write=(place, at),
        code=f"i + {k} if abs(a) == m else {state.shape[-2] - 1}",
        accumulate=Reduction.MIN,
    )
    return place


def _pivot_row(state: Tensor, place: Tensor, build: MapFragment, spatial: Mapping[str, int], k: int) -> Tensor:
    """Return the row with the pivot: read from memory, at a place that depends on data."""
    lead, width = list(spatial), state.shape[-1]
    row = build.array(f"row{k}", (*spatial.values(), width))
    build.map(
        f"row{k}",
        spatial=spatial,
        loops={"j": width},
        reads={"place": (place, lead or ["0"])},
        tables={"table": state},
        write=(row, [*lead, "j"]),
        code=f"table[{', '.join([*lead, 'place', 'j'])}]",
    )
    return row


def _eliminated(
    state: Tensor, pivot: Sequence[Tensor], target: Tensor, build: MapFragment, spatial: Mapping[str, int], k: int
) -> None:
    """Write the state without its first column: the pivot's row, scaled, is row k, what was there is where it was."""
    lead, (place, row) = list(spatial), pivot
    source = "(t if i == place else s) - (g if i == place else f) / p * r"
    build.map(
        f"left{k}",
        spatial=spatial,
        loops={"i": state.shape[-2], "j": target.shape[-1]},
        reads={
            "s": (state, [*lead, "i", "j + 1"]),
            "t": (state, [*lead, str(k), "j + 1"]),
            "f": (state, [*lead, "i", "0"]),
            "g": (state, [*lead, str(k), "0"]),
            "r": (row, [*lead, "j + 1"]),
            "p": (row, [*lead, "0"]),
            "place": (place, lead or ["0"]),
        },
        write=(target, [*lead, "i", "j"]),
        code=f"r / p if i == {k} else {source}",
    )
