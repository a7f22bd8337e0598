"""Systems of equations by Gauss-Jordan elimination with exchange of rows."""

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, Tensor, expansion
from dfcompile.lowering.expressions import real_type
from dfcompile.lowering.matrix_batch import Element, MatrixBatch
from dfcompile.lowering.operators import Eliminate


@expansion(Eliminate, "gauss-jordan", source="higham02", default=True)
def gauss_jordan(op: CanonicalNode[Eliminate], build: MapFragment) -> None:
    """Per column: the largest element is sought, its row changes place with the first one left and off all others.

    What is kept are the columns that are left beside the right-hand sides; four scopes per column, one task per matrix
    and scope. A matrix without a pivot gives NaN.
    """
    a, b, x = op.input(0), op.input(1), op.output()
    rows, columns = b.shape[-2:]
    batch = MatrixBatch(build, a)
    state = batch.array("joined", rows, rows + columns)
    batch.map("matrix", {"i": rows, "j": rows}, {"a": (a, "i", "j")}, (state, "i", "j"), "a")
    batch.map("sides", {"i": rows, "j": columns}, {"b": (b, "i", "j")}, (state, "i", f"j + {rows}"), "b")
    for k in range(rows):
        place = _pivot_place(batch, state, k)
        row = _pivot_row(batch, state, place, k)
        target = x if k == rows - 1 else batch.array(f"left{k + 1}", rows, rows + columns - k - 1)
        _eliminate(batch, state, (place, row), target, k)
        state = target


def _pivot_place(batch: MatrixBatch, state: Tensor, k: int) -> Tensor:
    """Return the number of the row with the pivot: the first of the largest elements from row k on."""
    largest = batch.array(f"largest{k}", dtype=real_type(state.dtype))
    place = batch.array(f"place{k}", dtype="int64")
    rows, candidate = state.shape[-2], (state, f"i + {k}", "0")
    batch.map(f"largest{k}", {"i": rows - k}, {"a": candidate}, (largest,), "abs(a)", Reduction.MAX)
    source = f"i + {k} if abs(a) == m else {rows - 1}"
    batch.map(f"place{k}", {"i": rows - k}, {"a": candidate, "m": (largest,)}, (place,), source, Reduction.MIN)
    return place


def _pivot_row(batch: MatrixBatch, state: Tensor, place: Tensor, k: int) -> Tensor:
    """Return the row with the pivot: read from memory, at a place that depends on data."""
    width = state.shape[-1]
    row = batch.array(f"row{k}", width)
    source = f"table[{', '.join([*batch.spatial, 'place', 'j'])}]"
    batch.map(f"row{k}", {"j": width}, {"place": (place,)}, (row, "j"), source, tables={"table": state})
    return row


def _eliminate(batch: MatrixBatch, state: Tensor, pivot: tuple[Tensor, Tensor], target: Tensor, k: int) -> None:
    """Write the state without its first column: the pivot's row, scaled, is row k, what was there is where it was."""
    place, row = pivot
    reads: dict[str, Element] = {
        "s": (state, "i", "j + 1"),
        "t": (state, str(k), "j + 1"),
        "f": (state, "i", "0"),
        "g": (state, str(k), "0"),
        "r": (row, "j + 1"),
        "p": (row, "0"),
        "place": (place,),
    }
    source = f"r / p if i == {k} else (t if i == place else s) - (g if i == place else f) / p * r"
    batch.map(f"left{k}", {"i": state.shape[-2], "j": target.shape[-1]}, reads, (target, "i", "j"), source)
