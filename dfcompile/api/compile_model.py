"""From a model to its figures: what ``dfcompile MODEL`` does."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from dfcompile.api.requests import (
    NO_DIMS,
    NO_FIXED_INPUTS,
    NO_SHAPES,
    Counts,
    Dims,
    File,
    FixedInputs,
    Names,
    Rules,
    Shapes,
    compile_options,
)
from dfcompile.api.runs import ModelRun
from dfcompile.api.scheduled import schedule_results
from dfcompile.audit.reports import audit_report
from dfcompile.driver import explore
from dfcompile.errors import UserError
from dfcompile.frontend import ReadModel, read_model
from dfcompile.frontend.in_memory import reading
from dfcompile.options import Options, ShowStage, show_nothing
from dfcompile.report.summary import summarize

if TYPE_CHECKING:
    import onnx
    import torch  # noqa: TID251  # for its types alone


def compile_model(
    model: File | onnx.ModelProto | torch.nn.Module,
    *,
    pes: Counts,
    example_inputs: torch.Tensor | tuple[torch.Tensor, ...] | None = None,
    name: str = "model",
    expand: Rules = (),
    passes: Names = (),
    shapes: Shapes = NO_SHAPES,
    dims: Dims = NO_DIMS,
    fixed_inputs: FixedInputs = NO_FIXED_INPUTS,
    volumes: str = "exact",
    partition: str = "best",
    effort: str = "quick",
    barrier: bool | None = None,
    max_fifo: int | None = None,
    timing: str = "exact",
    granularity: Names | None = None,
    system: File | None = None,
    chips: Counts = 1,
    overlap: str = "perfect",
    solver: str = "dp",
    verify: bool = False,
    objective: str = "makespan",
    repeat: int = 1,
    show: ShowStage = show_nothing,
) -> ModelRun:
    """Say what lowerings of a model give on numbers of processing elements: makespan, I/O, cost.

    The options are those of the command line (docs/command-line.md), as Python values or as the texts of the command
    line: ``pes=[16, 128]`` or ``pes="16,128"``, ``expand={"MatMul": ["mv", "op"]}`` or ``expand=["MatMul=mv,op"]``.

    Args:
        model: a file (``.py``, ``.onnx``, or what a plug-in reads), or a model in memory: an ``onnx.ModelProto``, or a
            ``torch.nn.Module`` together with ``example_inputs``.
        pes: numbers of processing elements, each gives results.
        example_inputs: tensors that the module takes.
        name: of a model in memory.
        expand: expansions to compare, per operator type, name or pattern of names; their Cartesian product, the others
            as published. With ``auto`` among them what is left open is chosen per number of processing elements, and
            the granularity; with ``quick``, and without any, the same is compared with fewer other choices;
            ``published`` names the default of each type.
        passes: names of lowering passes, in order.
        shapes: sizes of the model's inputs that it leaves open, such as ``{"x": (1, 28)}``.
        dims: sizes of symbolic dimensions of the inputs, such as ``{"batch": 8}``.
        fixed_inputs: values that inputs have in every run, such as ``{"use_cache": False}``; one number stands for all
            elements.
        volumes: ``exact`` or ``array``.
        partition: name of the partitioner.
        effort: ``quick``, ``default`` or ``high``: how much is tried for a short schedule.
        barrier: whether a spatial block waits for the one before; ``None``: as the partitioner has it.
        max_fifo: elements that a FIFO may hold; ``None``: as many as it takes.
        timing: ``exact``, of a replay with the FIFOs of the schedule; or ``steady``, from mean intervals.
        granularity: ``declared``, ``pieces=N``, ``max-tasks=N`` or ``split=N``; of single operators
            ``ORIGIN:pieces=N``; what it leaves open is chosen if expansions are, else as declared.
        system: name or file of the machine; ``None``: the canonical one.
        chips: numbers of chips at hand.
        overlap: ``perfect``, ``none`` or ``compute-memory``.
        solver: for the configurations.
        verify: compile and run the lowered model, and compare it with a reference.
        objective: ``makespan``, ``io``, ``energy`` or ``cost``: by what expansions are chosen.
        repeat: how often the model runs, each time on inputs of its own: iterations run beside each other.
        show: gives a context that lasts as long as a stage, for showing progress.

    Raises:
        UserError: in any stage; the message is the one that the command line prints.
        InternalError: a bug of dfcompile.
    """
    options = compile_options(
        model if isinstance(model, str | PathLike) else name,
        pes=pes,
        expand=expand,
        passes=passes,
        shapes=shapes,
        dims=dims,
        fixed_inputs=fixed_inputs,
        volumes=volumes,
        partition=partition,
        effort=effort,
        barrier=barrier,
        max_fifo=max_fifo,
        timing=timing,
        granularity=granularity,
        system=system,
        chips=chips,
        overlap=overlap,
        solver=solver,
        verify=verify,
        objective=objective,
        repeat=repeat,
    )
    if isinstance(model, str | PathLike):
        if example_inputs is not None:
            raise UserError(f"example_inputs: given beside the file {str(model)!r} against a model in memory")
        return run_of(options, show)
    with reading(model, example_inputs) as read:
        return run_of(options, show, read)


def run_of(options: Options, show: ShowStage = show_nothing, read: ReadModel = read_model) -> ModelRun:
    """Compile a model with options that were checked already; see `compile_model`."""
    exploration = explore(options, show, read)
    report = summarize(exploration)
    audit_report(report, exploration)
    scheduled = ((*point.shown_schedule, point.scheduled.figures) for point in exploration.points)
    files = (*((options.model,) if read is read_model else ()), *map(Path, filter(None, (options.system,))))
    return ModelRun(report, schedule_results(report, scheduled), exploration, files=files)
