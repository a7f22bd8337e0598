"""Maps of numerical programs, and the canonical Nest."""

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.operators import Nest, Reduction


@expansion(Nest, "map", source="dematteis23", default=True)
def nest(op: CanonicalNode[Nest], build: MapFragment) -> None:
    """``Y[write(i)] = expression(a[read_0(i)], …)``: one scope; before it a copy if elements stay."""
    operator, operands, y = op.operator, op.operands(), op.output()
    loops = operator.loops()
    names = list(loops)
    read = operands[:-1] if operator.has_base else operands
    reads = dict(zip(operand_names(len(read)), zip(read, operator.reads, strict=True), strict=True))
    if operator.has_base:
        every = {f"d{axis}": extent for axis, extent in enumerate(y.shape)}
        build.map("kept", loops=every, reads={"a": (operands[-1], list(every))}, write=(y, list(every)), code="a")
    build.map(
        "part" if operator.has_base else "",
        spatial={name: loops[name] for name in names[: operator.spatial]},
        loops={name: loops[name] for name in names[operator.spatial :]},
        reads=reads,
        write=(y, operator.write),
        code=operator.expression,
        accumulate=operator.reduction,
        after_write=operator.has_base,
    )


@onnx_expansion("dace.Map", "map", source="ben-nun19", default=True)
def dace_map(op: Operator, build: CanonicalFragment) -> None:
    """A map of a ``@dace.program`` with one tasklet: one task, or one per iteration of the user's map around it."""
    kind = op.text("reduction", "")
    reads = tuple(op.texts(indices, "reads") for indices in op.items("reads"))
    expression, extents, write = op.text("expression", ""), op.integers("extents"), op.texts(op.items("write"), "write")
    reduction, has_base = Reduction[kind] if kind else None, op.integer("has_base", 0) != 0
    found = Nest(expression, extents, reads, write, op.integer("spatial", 0), reduction, has_base)
    build.add(found, op.operands(), op.output())
