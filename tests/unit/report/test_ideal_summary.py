"""The ideal of a mapping: its terms, how they are joined, and what is left of it where expansions are not known."""

from pathlib import Path

import onnx
import pytest

from dfcompile.audit.reports import audit_report
from dfcompile.driver import Exploration, explore
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.mapping_figures import MappingSummary
from dfcompile.report.summary import TRAFFIC_ALONE, summarize
from tests.asked_options import asked
from tests.onnx_text import model_from_text

BYTES = 4 * (2 * 32 + 32 * 2 + 4)
WORK = 4 * 32  # each product, which goes into its sum


def explored(folder: Path, **options: str) -> Exploration:
    text = "g (float[2,32] x, float[32,2] w) => (float[2,2] y) { y = MatMul(x, w) }"
    onnx.save(model_from_text(text), folder / "model.onnx")
    return explore(asked(folder / "model.onnx", (4,), **options))


def mapping_of(exploration: Exploration) -> MappingSummary:
    (result,) = summarize(exploration).results
    assert result.mapping is not None
    return result.mapping


@pytest.mark.parametrize("overlap", ["perfect", "none"])
def test_terms_are_joined_as_the_overlap_says(tmp_path: Path, overlap: str) -> None:
    mapping = mapping_of(explored(tmp_path, overlap=overlap))
    compute_s, memory_s = WORK / 4 * 1e-9, BYTES / 300e9

    assert (mapping.ideal.compute_s, mapping.ideal.memory_s, mapping.ideal.chain_s) == pytest.approx(
        (compute_s, memory_s, 2e-9)
    )
    assert mapping.ideal.bound_by == "compute"
    assert mapping.ideal_time_s == pytest.approx(compute_s + memory_s * (overlap == "none"))
    assert mapping.ideal_time_s <= mapping.time_s


def test_traffic_alone_is_left_where_volumes_are_of_arrays(tmp_path: Path) -> None:
    exploration = explored(tmp_path, volumes="array")
    mapping = mapping_of(exploration)

    assert (mapping.ideal.compute_s, mapping.ideal.chain_s, mapping.ideal.bound_by) == (None, None, "memory")
    assert mapping.ideal_time_s == pytest.approx(BYTES / 300e9)
    assert TRAFFIC_ALONE in summarize(exploration).assumptions


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_audit_refuses_another_ideal(tmp_path: Path, factor: float) -> None:
    exploration = explored(tmp_path)
    report = summarize(exploration)
    (result,) = report.results
    assert result.mapping is not None
    wrong = replace(result.mapping, ideal_time_s=factor * result.mapping.ideal_time_s)

    audit_report(report, exploration)
    with pytest.raises(VerificationError, match="ideal_time_s"):
        audit_report(replace(report, results=(replace(result, mapping=wrong),)), exploration)
