"""ONNX GatherElements, and the canonical LookupElements: single elements at indices that only a run knows."""

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.operators import LookupElements


@onnx_expansion("GatherElements", "lookup", default=True)
def gather_elements(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, j, …] = X[i, indices[i, j, …], …]`` along an axis: one task that reads X from memory."""
    x, indices, axis = op.input(0), op.input(1), op.axis()
    extent = x.shape[axis]
    if indices.value is not None and any(
        not -extent <= index < extent for index in op.static_integers(1, "indices") or ()
    ):
        raise op.unsupported(f"indices outside of axis {axis} of extent {extent}")
    for at, (count, available) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if at != axis and count > available:
            raise op.unsupported(f"{count} indices along axis {at} of extent {available}")
    build.add(LookupElements(axis), [x, indices], op.output())


@expansion(LookupElements, "map", source="onnx", default=True)
def lookup_elements(op: CanonicalNode[LookupElements], build: MapFragment) -> None:
    """``Y[i…] = X[i… with indices[i…] at the axis]``: one task in row order; a negative index counts from the end."""
    x, indices, y, axis = op.input(0), op.input(1), op.output(), op.operator.axis
    loops = {f"i{at}": extent for at, extent in enumerate(y.shape)}
    place = list(loops)
    place[axis] = f"(index + {x.shape[axis]}) % {x.shape[axis]}"
    build.map(
        "",
        loops=loops,
        reads={"index": (indices, list(loops))},
        tables={"table": x},
        write=(y, list(loops)),
        code=f"table[{', '.join(place)}]",
    )
