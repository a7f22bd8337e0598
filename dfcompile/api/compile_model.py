"""From a model to its figures, what ``dfcompile MODEL`` does, or to its outputs on inputs."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dfcompile.api.runs import ModelRun, schedule_results
from dfcompile.audit.reports import audit_report
from dfcompile.driver import explore
from dfcompile.errors import UserError, nearest
from dfcompile.expansion_names import PUBLISHED
from dfcompile.frontend import Model, ReadModel, ReadOptions, read_model
from dfcompile.frontend.reading import reading
from dfcompile.host.garbage import collected_seldom
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.options import Options, ShowStage, read_options, show_nothing, takes
from dfcompile.options.readers import Dims, File, FixedInputs, Names, Rules, Shapes
from dfcompile.plan import addressed_plan, plan_of
from dfcompile.records import replace
from dfcompile.report.summary import summarize
from dfcompile.variants import Lowerings

if TYPE_CHECKING:
    import onnx
    import torch  # noqa: TID251  # for its types alone

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


@takes(Options)
def compile_model(
    model: "File | onnx.ModelProto | torch.nn.Module | torch.export.ExportedProgram",
    *,
    example_inputs: "torch.Tensor | Sequence[object] | Mapping[str, object] | None" = None,
    dynamic_shapes: Mapping[str, object] | Sequence[object] | None = None,
    name: str = "model",
    show: ShowStage = show_nothing,
    **options: Any,
) -> ModelRun:
    """Say what lowerings of a model give on numbers of processing elements: makespan, I/O, cost.

    The options are those of the command line (docs/command-line.md), as Python values or as the texts of the command
    line: ``pes=[16, 128]`` or ``pes="16,128"``, ``expand={"MatMul": ["mv", "op"]}`` or ``expand=["MatMul=mv,op"]``.

    Args:
        model: a file (``.py``, ``.pt2``, ``.onnx``, or what a plug-in reads), or a model in memory: an
            ``onnx.ModelProto``, a ``torch.nn.Module`` together with ``example_inputs``, or a
            ``torch.export.ExportedProgram``.
        example_inputs: of a PyTorch model in memory: a tensor, a tuple of arguments, or a dictionary of arguments by
            name, as nested as the module takes them. An exported program has those that it was exported with.
        dynamic_shapes: of a module in memory: which sizes of the inputs vary, as `torch.export.export` takes it; they
            are those of the example, or of ``dims={"batch": 8}``.
        name: of a model in memory.
        show: gives a context that lasts as long as a stage, for showing progress.
        options: by name.

    Raises:
        UserError: in any stage; the message is the one that the command line prints.
        InternalError: a bug of dfcompile.
    """
    asked = read_options(Options, {"model": model if isinstance(model, str | PathLike) else name, **options})
    if isinstance(model, str | PathLike):
        for said, given in (("example_inputs", example_inputs), ("dynamic_shapes", dynamic_shapes)):
            if given is not None:
                raise UserError(f"{said}: given beside the file {str(model)!r} against a model in memory")
        return run_of(asked, show)
    with reading(model, example_inputs, dynamic_shapes) as read:
        return run_of(asked, show, read)


@collected_seldom()
def run_of(
    options: Options, show: ShowStage = show_nothing, read: ReadModel = read_model, *, reads_weights: bool = False
) -> ModelRun:
    """Compile a model with options that were checked already; see `compile_model`.

    Args:
        options: checked.
        show: gives a context that lasts as long as a stage.
        read: gives the model.
        reads_weights: whether values of weights count, though they are not verified.
    """

    def with_weights(path: Path, reading: ReadOptions) -> Model:
        return read(path, replace(reading, reads_weights=True))

    exploration = explore(options, show, with_weights if reads_weights else read)
    report = summarize(exploration)
    audit_report(report, exploration)
    scheduled = ((*point.shown_schedule, point.scheduled.figures) for point in exploration.points)
    files = (*((options.model,) if read is read_model else ()), *map(Path, filter(None, (options.system,))))
    return ModelRun(report, schedule_results(report, scheduled), exploration, files=files)
