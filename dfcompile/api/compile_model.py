"""From a model to its figures: what ``dfcompile MODEL`` does."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfcompile.api.runs import ModelRun, schedule_results
from dfcompile.audit.reports import audit_report
from dfcompile.driver import explore
from dfcompile.errors import UserError
from dfcompile.frontend import ReadModel, read_model
from dfcompile.frontend.in_memory import reading
from dfcompile.options import Options, ShowStage, read_options, show_nothing, takes
from dfcompile.options.readers import File
from dfcompile.report.summary import summarize

if TYPE_CHECKING:
    import onnx
    import torch  # noqa: TID251  # for its types alone


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


def run_of(options: Options, show: ShowStage = show_nothing, read: ReadModel = read_model) -> ModelRun:
    """Compile a model with options that were checked already; see `compile_model`."""
    exploration = explore(options, show, read)
    report = summarize(exploration)
    audit_report(report, exploration)
    scheduled = ((*point.shown_schedule, point.scheduled.figures) for point in exploration.points)
    files = (*((options.model,) if read is read_model else ()), *map(Path, filter(None, (options.system,))))
    return ModelRun(report, schedule_results(report, scheduled), exploration, files=files)
