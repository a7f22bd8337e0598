"""Operators that only change the shape: the same elements in the same order, so a view and no task."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion


def _view(op: Operator, build: CanonicalFragment) -> None:
    """The same elements in the same order under another shape: no data moves."""
    build.view_as(op.input(0), op.output())


EXPANSIONS = tuple(
    onnx_expansion(op_type, "view", default=True)(_view)
    for op_type in ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
)
