"""Mappings on machines that are hard to fill: no part of another machine is taken for the one that was asked for."""

from pathlib import Path

import onnx
import pytest

from dfcompile.audit.mapping import audit_mapping
from dfcompile.audit.mapping.bounds import require_part
from dfcompile.driver import Exploration, explore
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.summary import summarize
from tests.asked_options import asked
from tests.mutants.audited_reports import MACHINE
from tests.onnx_text import model_from_text
from tests.unit.dfmodel_backend.inter_chip.test_chip_counts import networked

MODEL = "g (float[4,6] x) => (float[4,6] z) { z = Relu(x) }"


def explored(folder: Path, machine: str) -> Exploration:
    onnx.save(model_from_text(MODEL), folder / "model.onnx")
    (folder / "machine.yaml").write_text(machine)
    return explore(asked(folder / "model.onnx", (4,), system=str(folder / "machine.yaml")))


def test_perfect_streams_without_a_limit_of_sram_passes_where_it_says_so(tmp_path: Path) -> None:
    exploration = explored(tmp_path, MACHINE.replace("sram_bytes_per_core: 512", "sram_bytes_per_core: 1"))
    ((result,), (point,)) = summarize(exploration).results, exploration.points
    assert result.mapping is not None
    audit_mapping("mapping", result.mapping, point)
    silent = replace(point, mapping=replace(point.mapping, assumptions=()))

    refused = r"mapping\.perfect_streams\.chips: found chips of 'small' that are not those of"
    with pytest.raises(VerificationError, match=refused):
        audit_mapping("mapping", result.mapping, silent)


@pytest.mark.parametrize(("kind", "chips"), [("r", (8,)), ("r_r", (2, 2)), ("sw_r", (2, 4))])
def test_chips_of_another_network_are_no_part(kind: str, chips: tuple[int, ...]) -> None:
    whole = networked("r_sw", 4, 2)
    require_part("chips", networked("r_sw", 2, 2), whole)
    require_part("chips", networked("sw", 2), whole)

    with pytest.raises(VerificationError, match="chips along"):
        require_part("chips", networked(kind, *chips), whole)
