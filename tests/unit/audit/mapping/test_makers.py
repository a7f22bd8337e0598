"""What is doubled or halved where figures of a mapping are made is refused: the audit shares none of it."""

from pathlib import Path
from typing import Any

import onnx
import pytest

from dfcompile.audit.mapping import audit_mapping
from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.inter_chip.conversions import Conversions, TensorGroup
from dfcompile.dfmodel_backend.machine import cost
from dfcompile.dfmodel_backend.machine.system import Cores, System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.sharding import program_shares
from dfcompile.driver import explore
from dfcompile.options import Options
from dfcompile.report import figure, summary
from tests.asked_options import asked
from tests.mutants.audited_reports import MACHINE
from tests.mutants.scaling import refused_when_scaled
from tests.onnx_text import model_from_text

MODEL = "g (float[16,24] x) => (float[16,24] z) { z = Softmax(x) }"
MADE = (
    (Kernel, "flop", 2),
    (Conversions, "_moved", 0.5),
    (Conversions, "_passing", 2),
    (Conversions, "_time_ns", 2),
    (LeastCosts, "_all_memory_ns", 0.5),
    (LeastCosts, "cycles_on_chips", 0.5),
    (Cores, "peak_gflops", 2),
    (System, "dram_gb_per_s", 2),
    (Overlap, "time_ns", 0.5),
    (TensorGroup, "cost", 2),
    (cost, "machine_cost_usd", 2),
    (cost, "machine_power_w", 2),
    (cost, "network_cost_usd", 0.5),
    (cost, "network_power_w", 2),
    (cost, "_received_per_ns", 0.5),
    (program_shares, "share_elements", 2),
    (figure, "NS_PER_S", 2),
    (figure, "NS_PER_S", 0.5),
    (summary, "_utilization", 2),
)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    folder: Path = tmp_path_factory.mktemp("softmax")
    onnx.save(model_from_text(MODEL), folder / "model.onnx")
    (folder / "machine.yaml").write_text(MACHINE)
    return asked(folder / "model.onnx", (4,), chips=(3,), partition="sb-lts", system=str(folder / "machine.yaml"))


def audit(options: Options) -> None:
    """Make a mapping, and audit what is reported of it."""
    exploration = explore(options)
    (result,) = summary.summarize(exploration).results
    assert result.mapping is not None
    assert result.mapping.exchanges
    audit_mapping("mapping", result.mapping, exploration.points[0])


def test_what_is_made_right_passes(options: Options) -> None:
    audit(options)


@pytest.mark.parametrize(("owner", "name", "factor"), MADE, ids=lambda part: getattr(part, "__name__", part))
def test_what_is_made_wrong_is_refused(
    options: Options, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, factor: float
) -> None:
    refused_when_scaled(lambda: audit(options), monkeypatch, owner, name, factor)
