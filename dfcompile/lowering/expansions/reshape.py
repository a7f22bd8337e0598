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
    """``Y = X`` in inference: no data moves; the mask, if it is used, is true everywhere."""
    ratio, training = op.optional_input(1), op.optional_input(2)
    drops_nothing = ratio is not None and ratio.value is not None and not ratio.value.any()
    if not drops_nothing and training is not None and (training.value is None or training.value.any()):
        raise op.unsupported("operand 'training_mode' is true against false (export the model for inference)")
    mask = op.optional_output(1)
    if mask is not None:
        build.elementwise("True", [op.input(0)], mask, step="mask")
    if op.outputs[0] is not None:
        build.view_as(op.input(0), op.outputs[0])
