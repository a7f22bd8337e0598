"""What is doubled or halved where figures of schedules, bounds and traffic are made is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

from dfcompile.audit.reports import audit_report
from dfcompile.choosing import estimate, operator_options, sketches
from dfcompile.driver import explore
from dfcompile.io_bounds.fusion.residency import _Search
from dfcompile.io_bounds.operators import BoundedModel
from dfcompile.lowering.alternatives import bound
from dfcompile.options import Options
from dfcompile.report import summary
from dfcompile.report.summary import summarize
from dfcompile.scheduler import checked_schedule, evaluation, operator_times, repetition, streaming_schedule
from dfcompile.scheduler.evaluation import ScheduleFigures
from dfcompile.scheduler.schedules import Schedule
from tests.asked_options import asked
from tests.mutants.scaling import refused_when_scaled
from tests.onnx_text import model_from_text

MODEL = "g (float[6,8] x, float[8,6] w) => (float[6,6] z) { y = MatMul(x, w) z = Relu(y) }"
MADE = (
    (BoundedModel, "compulsory_bytes", 2),
    (BoundedModel, "compulsory_bytes", 0.5),
    (Schedule, "blocks_count", 2),
    (ScheduleFigures, "gap", 2),
    (ScheduleFigures, "pe_utilization", 0.5),
    (ScheduleFigures, "speedup", 2),
    (_Search, "_cost", 2),
    (_Search, "_cost", 0.5),
    (bound._Outcome, "cycles", 0.5),
    (bound._Outcome, "cycles", 2),
    (checked_schedule, "critical_path", 2),
    (checked_schedule, "streaming_depth", 0.5),
    (checked_schedule, "total_work", 2),
    (estimate, "_longest_path", 2),
    (evaluation, "io_bytes", 2),
    (evaluation, "io_elements", 0.5),
    (evaluation, "makespan_gap", 2),
    (evaluation, "sum", 2),  # the elements of all FIFOs
    (evaluation, "total_work", 0.5),
    (operator_options, "estimate", 2),
    (operator_options, "estimate", 0.5),
    (operator_times, "shared", 2),
    (repetition, "_most_at_once", 0.5),
    (sketches, "estimate", 0.5),
    (streaming_schedule, "lower_bound_cycles", 2),
    (streaming_schedule, "lower_bound_cycles", 0.5),
    (summary, "makespan_gap", 2),
)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Options]:
    """By partition: all take what the model is lowered to, and the best of several takes a bound to stop at as well."""
    folder: Path = tmp_path_factory.mktemp("product")
    onnx.save(model_from_text(MODEL), folder / "model.onnx")
    return {
        partition: asked(folder / "model.onnx", (4,), "MatMul=mv", repeat=4, partition=partition)
        for partition in ("best", "sb-lts")
    }


def audit(options: Options) -> None:
    """Compile the model, and audit the report."""
    exploration = explore(options)
    audit_report(summarize(exploration), exploration)


@pytest.mark.parametrize("partition", ["best", "sb-lts"])
def test_what_is_made_right_passes(options: Mapping[str, Options], partition: str) -> None:
    audit(options[partition])


@pytest.mark.parametrize(("owner", "name", "factor"), MADE, ids=lambda part: getattr(part, "__name__", part))
def test_what_is_made_wrong_is_refused(
    options: Mapping[str, Options], monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, factor: float
) -> None:
    partition = "best" if owner is streaming_schedule else "sb-lts"

    refused_when_scaled(lambda: audit(options[partition]), monkeypatch, owner, name, factor)
