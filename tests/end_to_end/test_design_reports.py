"""Reports on designs keep their JSON contract."""

import json
from pathlib import Path

import jsonschema
import pytest

from dfcompile.cli.main import main
from dfcompile.report.design.figures import design_schema
from tests.locations import DESIGNS
from tests.report_schemas import validate

NAMES = (
    *("readme_gpt3_1t_sn30", "llm_175B_fwd_sramdram_mm", "serve_gpt3_decode_genz_f13_025x", "mamba_scan_256k_rdu"),
    *("dlrm_A_zionex_128", "hpl_h100_dgx1_1024", "fft_a100_1024"),
)


@pytest.mark.parametrize(
    ("name", "compat"), [*((name, "right") for name in NAMES), *((name, "dfmodel") for name in NAMES[1:3])]
)
def test_reports_follow_the_schema_that_is_shipped(
    name: str, compat: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "solved"

    assert main([str(DESIGNS / f"{name}.txt"), "--compat", compat, "--format", "json", "-o", str(folder)]) == 0
    report = json.loads(capsys.readouterr().out)
    validate(report, design_schema)
    assert (report["name"], report["format"]) == (name, "dfcompile-design/1")
    written = json.loads((folder / "report.json").read_text())
    for found in (report, written):
        del found["search"]["solver_s"]
    assert written == report


def test_schema_is_one_and_refuses_what_the_contract_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(design_schema())
    main([str(DESIGNS / "fft_a100_1024.txt"), "--format", "json"])
    report = json.loads(capsys.readouterr().out)

    with pytest.raises(jsonschema.ValidationError, match="made_up"):
        validate({**report, "made_up": 1}, design_schema)
    with pytest.raises(jsonschema.ValidationError, match="'made_up' was unexpected"):
        validate({**report, "figures": {**report["figures"], "made_up": 1}}, design_schema)
    figures = {name: value for name, value in report["figures"].items() if name != "time_s"}
    with pytest.raises(jsonschema.ValidationError, match="'time_s' is a required property"):
        validate({**report, "figures": figures}, design_schema)
