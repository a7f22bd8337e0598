"""Operators that move no data: the same elements in the same order, so a view and no task."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion


def _view(op: Operator, build: CanonicalFragment) -> None:
    """The same elements in the same order under another shape: no data moves."""
    build.view_as(op.input(0), op.output())


EXPANSIONS = tuple(
    onnx_expansion(op_type, "view", default=True)(_view)
    for op_type in ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
)


@onnx_expansion("Dropout", "view", default=True)
def dropout(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` in inference: no data moves."""
    if len(op.outputs) > 1 and op.outputs[1] is not None:
        raise op.unsupported("the result 'mask' has no expansion (use the values only)")
    training = op.optional_input(2)
    if training is not None and (training.value is None or training.value.any()):
        raise op.unsupported("operand 'training_mode' is true against false (export the model for inference)")
    build.view_as(op.input(0), op.output())
