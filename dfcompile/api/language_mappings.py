"""Layers of a study through the back end: what ``dfcompile llm --map`` adds."""

from collections.abc import Sequence

from dfcompile.api.language_models import StudyRun
from dfcompile.api.runs import PageSource
from dfcompile.errors import UserError
from dfcompile.host.stages import counted
from dfcompile.language_models.mapping.mapped_layers import MappedStep, mapped_step
from dfcompile.language_models.parallel.deployment import NOTHING, Case
from dfcompile.language_models.study import Study
from dfcompile.language_models.times.step_time import roofline


def page_source_of(run: StudyRun, steps: Sequence[MappedStep]) -> PageSource:
    """Return what a page shows of a study: of mapped steps a layer of each kind of every step, in its configurations.

    Args:
        run: the study.
        steps: mapped; empty: nobody asked.
    """
    from dfcompile.visualization.dataflow import MappedGraph, dataflow_of_graphs

    graphs = [
        MappedGraph(f"{part.part}, {step.batch.name}" if len(steps) > 1 else part.part, part.graph, part.mapping)
        for step in steps
        for part in step.parts
    ]
    return PageSource(run.files, graph=dataflow_of_graphs(graphs, run.study.model.name) if steps else None)


def mapped(study: Study) -> tuple[MappedStep, ...]:
    """Map a layer of each kind of every step of a study on its system, with as many chips as were at hand.

    Raises:
        UserError: as `mapped_step`, or a part of caches is offloaded.
    """
    request = study.request
    if request.offload != NOTHING:
        raise UserError("--map: found --offload against caches in the chip's own memory")
    batches = counted(request.batches)
    cases = (Case(study.model, one, study.device, study.precision, request.choices, roofline) for one in batches)
    return tuple(mapped_step(request.options.system, case, max(request.chips)) for case in cases)
