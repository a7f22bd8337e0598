"""System files: the shipped ones load, bad ones end with one line that names file, line and key."""

from pathlib import Path

import pytest

from dfcompile.dfmodel_backend import load_system, shipped_systems
from dfcompile.dfmodel_backend.system_file import parse_system
from dfcompile.errors import UserError

TEXT = """name: test
accelerator:
  cores: 4
  lanes_per_core: 2
  stages_per_core: 3
  frequency_ghz: 1.5
  sram_bytes: 1000
dram:
  bandwidth_gb_per_s: 10
"""


def test_a_file_of_ones_own_comes_before_a_shipped_system_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_system("sn30.yaml") == load_system("sn30")

    (tmp_path / "sn30.yaml").write_text("name: mine\n")

    with pytest.raises(UserError, match=r"^sn30\.yaml"):
        load_system("sn30.yaml")


@pytest.mark.parametrize("name", shipped_systems())
def test_shipped_systems_load(name: str) -> None:
    system = load_system(name)

    assert system.name == name
    assert system.accelerator.peak_gflops > 0
    assert all(assumption.source for assumption in system.sources)


def test_canonical_machine_scales_with_its_cores() -> None:
    small, large = load_system().with_cores(16), load_system().with_cores(245_760)

    assert small.accelerator.peak_gflops == 32
    assert small.accelerator.price_usd == pytest.approx(16 * 16522.25023 / 245_760)
    assert large.accelerator.sram_bytes == pytest.approx(671_088_640)
    assert large.accelerator.power_w == pytest.approx(444.7061955)


def test_chip_level_figures_do_not_stretch() -> None:
    system = parse_system(TEXT, "x.yaml")

    assert system.with_cores(2).accelerator.sram_bytes == 1000
    with pytest.raises(UserError, match="found 5 cores against 4 of its chip"):
        system.with_cores(5)
    with pytest.raises(UserError, match="found 0 cores against at least 1"):
        system.with_cores(0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lanes_per_core", "lane_per_core", r"x.yaml:4: unknown key 'accelerator.lane_per_core' \(did you mean 'lanes"),
        ("h_gb_per_s: 10", "h_gb_per_s: -10", r"x.yaml:9: key 'dram.bandwidth_gb_per_s': found -10 against"),
        ("h_gb_per_s: 10", "h_gb_per_s: 0", r"x.yaml:9: key 'dram.bandwidth_gb_per_s': found 0 against"),
        ("h_gb_per_s: 10", "h_gb_per_s: .nan", r"x.yaml:9: key 'dram.bandwidth_gb_per_s': found nan against"),
        ("h_gb_per_s: 10", "h_gb_per_s: .inf", r"x.yaml:9: key 'dram.bandwidth_gb_per_s': found inf against"),
        ("cores: 4", "cores: four", r"x.yaml:3: key 'accelerator.cores': found 'four' against"),
        ("cores: 4", "cores: 2.5", r"x.yaml:3: key 'accelerator.cores': found 2.5 against"),
        ("name: test\n", "", r"x.yaml:1: key 'name' is missing"),
        ("  sram_bytes: 1000\n", "", r"x.yaml:2: key 'sram_bytes' is missing \(or 'sram_bytes_per_core'\)"),
        ("dram:", "dram: [", r"x.yaml:\d+: broken YAML"),
        ("sram_bytes: 1000", "sram_bytes: 1\n  sram_bytes_per_core: 1", "found both 'sram_bytes' and"),
        (TEXT, "", "x.yaml:1: found no keys against"),
    ],
)
def test_bad_system_files_name_file_line_and_key(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(UserError, match=message) as caught:
        parse_system(TEXT.replace(old, new), "x.yaml")

    assert "\n" not in str(caught.value)


def test_missing_files_and_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"system 'sn3O': no such file or shipped system \(did you mean 'sn30'\?\)"):
        load_system("sn3O")
    with pytest.raises(UserError, match="cannot be read: no such file or directory"):
        load_system(tmp_path / "no.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read: not a text file"):
        load_system(binary)
