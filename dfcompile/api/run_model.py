"""A model lowered, compiled and run on inputs: its outputs, by the expansions that were named."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dfcompile.errors import UserError, nearest
from dfcompile.expansion_names import PUBLISHED
from dfcompile.frontend import Model, read_model
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.options import Options, read_options, show_nothing
from dfcompile.options.readers import Dims, File, FixedInputs, Names, Rules, Shapes
from dfcompile.plan import addressed_plan, plan_of
from dfcompile.records import replace
from dfcompile.variants import Lowerings

Array = npt.NDArray[np.generic]


def run_model(
    model: File,
    inputs: Mapping[str, Array] | None = None,
    *,
    expand: Rules = (),
    passes: Names = (),
    shapes: Shapes = (),
    dims: Dims = (),
    fixed_inputs: FixedInputs = (),
    seed: int = 0,
) -> dict[str, Array]:
    """Lower a model, compile it and run it; nothing is scheduled, so expansions may call libraries such as LAPACK.

    Args:
        model: a file (``.py``, ``.onnx``, or what a plug-in reads).
        inputs: by name, of the model's shapes and element types, as far as they are not fixed; ``None``: the file's
            examples, else random numbers.
        expand: one expansion per operator type, name or pattern of names; the others are the published ones.
        passes: names of lowering passes, in order.
        shapes: sizes of the model's inputs that it leaves open.
        dims: sizes of symbolic dimensions.
        fixed_inputs: values that inputs have in every run, such as ``{"use_cache": False}``; one number stands for all
            elements.
        seed: of random inputs.

    Returns:
        Outputs by name, as far as they have elements.

    Raises:
        UserError: an option or an input is not as it must be, the model cannot be lowered, or the machine lacks a
            compiler or a library that is called.
        InternalError: a bug of dfcompile.
    """
    given = {"passes": passes, "shapes": shapes, "dims": dims, "fixed_inputs": fixed_inputs}
    options = read_options(Options, {"model": model, "pes": 1, "expand": expand or PUBLISHED, **given})
    combinations = options.expand.combinations
    if options.expand.chooses or len(combinations) != 1:
        raise UserError(
            f"--expand: {len(combinations)} combinations, auto or quick against one expansion of each operator"
        )
    plan = plan_of(options)
    read = read_model(options.model, replace(plan.reading, reads_weights=True))
    plan = addressed_plan(plan, read)
    return run_program(Lowerings(read, plan, show_nothing).maps(plan.combinations[0]), _feeds(read, inputs, seed))


def _feeds(model: Model, inputs: Mapping[str, Array] | None, seed: int) -> dict[str, Array]:
    """Return one array per input.

    Raises:
        UserError: one is missing, unknown, or has another shape or element type.
    """
    ports = model.program.inputs
    if inputs is None:
        return {port.name: value for port, value in zip(ports, model.example_feeds(seed), strict=True)}
    names = [port.name for port in ports]
    for name in inputs:
        if name not in names:
            raise UserError(f"input {name!r}: the model has none of that name{nearest(name, names)}")
    for port in ports:
        if port.name not in inputs:
            raise UserError(f"input {port.name!r}: no value against {port.dtype}{list(port.shape)}")
        found = inputs[port.name]
        if (found.shape, found.dtype.name) != (port.shape, port.dtype):
            is_as = f"{found.dtype.name}{list(found.shape)} against {port.dtype}{list(port.shape)}"
            raise UserError(f"input {port.name!r}: {is_as}")
    return dict(inputs)
