"""System files: the shipped ones load, bad ones end with one line that names file, line and key."""

import time
from pathlib import Path

import pytest

from dfcompile.dfmodel_backend import load_system, named_systems
from dfcompile.dfmodel_backend.machine.cost import cost_usd, roofs_of
from dfcompile.dfmodel_backend.machine.system_file import parse_system
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


@pytest.mark.parametrize("name", named_systems().by_name)
def test_shipped_systems_load(name: str) -> None:
    system = load_system(name)

    assert system.name == name
    assert system.accelerator.peak_gflops > 0
    assert all(assumption.source for assumption in system.sources)


def test_canonical_machine_is_that_of_its_file() -> None:
    assert load_system() == load_system("canonical")


def test_canonical_machine_is_none_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "canonical").write_text("name: mine\n")
    monkeypatch.chdir(tmp_path)

    assert load_system().name == "canonical"


def test_canonical_machine_scales_with_its_cores() -> None:
    small, large = load_system().with_cores(16), load_system().with_cores(245_760)

    assert small.accelerator.peak_gflops == 32
    assert small.accelerator.price_usd == pytest.approx(16 * 16522.25023 / 245_760)
    assert large.accelerator.sram_bytes == pytest.approx(671_088_640)
    assert large.accelerator.power_w == pytest.approx(444.7061955)


def test_memory_without_limit_takes_no_time_and_no_money() -> None:
    text = TEXT.replace("sram_bytes: 1000", "sram_bytes: .inf").replace("h_gb_per_s: 10", "h_gb_per_s: .inf")
    system = parse_system(f"{text}  capacity_bytes: .inf\n", "x.yaml")

    assert system.is_dram_unlimited
    assert (system.accelerator.sram_bytes, system.dram_capacity_bytes) == (0, 0)  # unlimited
    assert 10**15 / system.dram_gb_per_s * system.dram_gb_per_s == 10**15
    assert (cost_usd(system), system.warnings, roofs_of(system).dram_bytes_per_s) == (0, (), None)
    assert {each.value for each in system.sources if "dram" in each.name} == {"unlimited"}
    assert load_system("contention-free").is_dram_unlimited
    assert not load_system().is_dram_unlimited


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
        ("cy_ghz: 1.5", "cy_ghz: .inf", r"x.yaml:6: key 'accelerator.frequency_ghz': found inf against"),
        ("h_gb_per_s: 10", "h_gb_per_s: -.inf", r"x.yaml:9: key 'dram.bandwidth_gb_per_s': found -inf against"),
        (
            "h_gb_per_s: 10",
            "h_gb_per_s: .inf\n  power_w_per_gb_per_s: 0.5",
            r"x.yaml:10: key 'dram.power_w_per_gb_per_s': found 0.5 against 0, since the bandwidth is unlimited",
        ),
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
    with pytest.raises(UserError, match=r"system 'sn3O': no such file or known system \(did you mean 'sn30'\?\)"):
        load_system("sn3O")
    with pytest.raises(UserError, match="cannot be read: no such file or directory"):
        load_system(tmp_path / "no.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read: not a text file"):
        load_system(binary)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("bandwidth_gb_per_s: 10", "bandwidth_gb_per_s: true", "dram.bandwidth_gb_per_s"),
        ("bandwidth_gb_per_s: 10", 'bandwidth_gb_per_s: "300"', "dram.bandwidth_gb_per_s"),
        ("bandwidth_gb_per_s: 10", "bandwidth_gb_per_s: [10]", "dram.bandwidth_gb_per_s"),
        ("bandwidth_gb_per_s: 10", "bandwidth_gb_per_s: 2020-01-01", "dram.bandwidth_gb_per_s"),
        ("frequency_ghz: 1.5", "frequency_ghz: '1.5'", "accelerator.frequency_ghz"),
        ("sram_bytes: 1000", "sram_bytes: false", "accelerator.sram_bytes"),
        ("cores: 4", "cores: 4.0", "accelerator.cores"),
        ("cores: 4", "cores: 1.5", "accelerator.cores"),
        ("cores: 4", "cores: true", "accelerator.cores"),
        ("cores: 4", "cores: '4'", "accelerator.cores"),
        ("name: test", "name: 300", "name"),
        ("name: test", "name: true", "name"),
        ("name: test", "name: {a: 1}", "name"),
        ("name: test", "name: test\nsources: {dram: 1}", "sources.dram"),
        ("name: test", "name: test\nchips: '1'", "chips"),
        ("name: test", "name: test\nnetwork: {kind: r, dimensions: [{chips: 2.0, link_bandwidth_gb_per_s: 1}]}",
         "network.dimensions.0.chips"),
        ("name: test", "name: test\nnetwork: {kind: r, dimensions: [{chips: 2, link_bandwidth_gb_per_s: '1'}]}",
         "network.dimensions.0.link_bandwidth_gb_per_s"),
        ("name: test", "name: test\nnetwork: {kind: 1, dimensions: []}", "network.kind"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(old: str, new: str, key: str) -> None:
    assert old in TEXT
    with pytest.raises(UserError, match=rf"^x\.yaml:\d+: key '{key}': found .* against"):
        parse_system(TEXT.replace(old, new), "x.yaml")


def test_network_of_plain_lists_is_read() -> None:
    text = (
        TEXT
        + "network: {kind: r_sw, dimensions: [{chips: 2, link_bandwidth_gb_per_s: 1}, "
        + ("{chips: 3, link_bandwidth_gb_per_s: 2.5}]}\n")
    )

    assert [one.chips for one in parse_system(text, "x.yaml").network.dimensions] == [2, 3]


ONE = "{chips: 2, link_bandwidth_gb_per_s: 1}"


@pytest.mark.parametrize(
    ("chips", "kind", "dimensions", "message"),
    [
        ("", "r_r_r", f"{ONE}, {ONE}", "key 'network.dimensions': found 2 dimensions against the 3 of kind 'r_r_r'"),
        ("", "r", f"{ONE}, {ONE}", "key 'network.dimensions': found 2 dimensions against the 1 of kind 'r'"),
        ("", "r_sw", "", "key 'network.dimensions': found 0 dimensions against the 2 of kind 'r_sw'"),
        ("", "torus", ONE, "key 'network.kind': topology 'torus': unknown"),
        ("", "r_x", f"{ONE}, {ONE}", "key 'network.kind': topology 'r_x': has a dimension 'x', which is unknown"),
        ("", "r_r_r_r_r", ONE, "key 'network.kind': topology 'r_r_r_r_r': found 5 dimensions against at most 4"),
        ("chips: 6", "r_r", f"{ONE}, {ONE}", "key 'chips': found 6 against the 2 x 2 of its network"),
        ("chips: 1", "r", ONE, "key 'chips': found 1 against the 2 of its network"),
        ("chips: 2", "", "", r"key 'chips': found 2 against the 1 of a file without a network \(key 'network' says"),
    ],
)  # fmt: skip
def test_a_network_that_is_none_is_refused_when_it_is_read(
    chips: str, kind: str, dimensions: str, message: str
) -> None:
    """A missing dimension ended in ``zip()``; an unknown kind passed wherever one chip was asked for."""
    network = f"network: {{kind: {kind}, dimensions: [{dimensions}]}}\n" if kind else ""

    with pytest.raises(UserError, match=rf"^x\.yaml:\d+: {message}"):
        parse_system(f"{TEXT}{chips}\n{network}", "x.yaml")


@pytest.mark.parametrize("name", named_systems().by_name)
def test_shipped_systems_are_plausible(name: str) -> None:
    assert load_system(name).warnings == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("frequency_ghz: 1.5", "frequency_ghz: 1400", "found 1400 GHz against at most 20 GHz (is it in MHz?)"),
        ("frequency_ghz: 1.5", "frequency_ghz: 0.0014", "found 0.0014 GHz against at least 0.01 GHz (is it in THz?)"),
        ("bandwidth_gb_per_s: 10", "bandwidth_gb_per_s: 300e9", "'dram.bandwidth_gb_per_s': found 3e+11 GB/s"),
        (
            "sram_bytes: 1000",
            "sram_bytes: 300",
            "'accelerator.sram_bytes': found 300 bytes against at least 512 bytes",
        ),
        ("bandwidth_gb_per_s: 10", "bandwidth_gb_per_s: 10\n  capacity_bytes: 64", "(is it in GB?)"),
        ("sram_bytes: 1000", "sram_bytes: 2000\n  power_w: 4.0e+8", "'accelerator.power_w'"),
    ],
)
def test_an_implausible_figure_warns_and_is_taken(old: str, new: str, expected: str) -> None:
    text = TEXT.replace("sram_bytes: 1000", "sram_bytes: 2000") if "sram" not in old else TEXT
    (warning,) = parse_system(text.replace(old, new), "x.yaml").warnings

    assert warning.startswith("x.yaml: key ")
    assert expected in warning


def test_a_file_that_repeats_its_parts_without_end_is_refused_at_once() -> None:
    lines = ["name: &a0 [x, x]"]
    lines += [f"k{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    begin = time.process_time()
    with pytest.raises(UserError):
        parse_system("\n".join(lines), "x.yaml")
    with pytest.raises(UserError, match="key 'name': found a list against"):
        parse_system("\n".join([*lines[:1], *TEXT.splitlines()[1:]]), "x.yaml")

    assert time.process_time() - begin < 2.0


@pytest.mark.parametrize("text", ["name: " + "{a: " * 400, "name: " + "[" * 400, "- " * 400])
def test_a_file_that_is_nested_too_deeply_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match=r"^x\.yaml"):
        parse_system(text, "x.yaml")


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(UserError, match="found more than 131072 bytes"):
        load_system("/dev/zero")
