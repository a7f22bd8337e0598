"""A package of third parties: installed for real, found by the command line, checked by its own test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"
LENET_CONV = Path(__file__).parent.parent / "examples" / "lenet" / "conv1.py"
SOFTMAX = Path(__file__).parent / "models" / "middle_softmax.py"


def install(source: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--upgrade", "--target", str(target), str(source)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def dfcompile(*arguments: str, packages: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dfcompile", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the plug-in in it; this environment stays as it is."""
    source = tmp_path_factory.mktemp("source") / "mylab"
    shutil.copytree(PLUGIN, source)
    target = tmp_path_factory.mktemp("packages")
    install(source, target)
    return target


def test_listings_show_the_plug_in_and_its_origin(packages: Path) -> None:
    expansions = dfcompile("expansions", packages=packages)
    passes = dfcompile("passes", packages=packages)

    assert any(
        "MatMul" in line and "rows" in line and "mylab.matmul_rows" in line for line in expansions.stdout.splitlines()
    )
    assert any("memory-only" in line and "mylab.memory_only" in line for line in passes.stdout.splitlines())


def test_expansion_and_pass_of_the_plug_in_lower_a_model(packages: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    arguments = (str(LENET_CONV), "--pes", "16", "--expand", "MatMul=rows,lmv", "--passes", "memory-only", "--verify")
    run = dfcompile(*arguments, "--format", "json", "-o", str(report), packages=packages)

    assert run.returncode == 0, run.stderr
    assert '"MatMul": "rows"' in report.read_text()
    assert '"spilled_elements": 0' in report.read_text()


def test_the_plug_in_passes_the_checks_for_everybody(packages: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               *(str(PLUGIN / file) for file in ("test_matmul_rows.py", "test_row_softmax.py"))]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)

    assert "2 passed" in run.stdout


def test_canonical_operator_of_the_plug_in_is_lowered_and_is_one_kernel(packages: Path) -> None:
    run = dfcompile(str(SOFTMAX), "--pes", "16", "--expand", "Softmax=one-kernel", "--verify", packages=packages)

    assert run.returncode == 0, run.stderr


def test_a_field_that_the_plug_in_misspells_is_named(packages: Path, tmp_path: Path) -> None:
    broken = tmp_path / "packages"
    shutil.copytree(packages, broken)
    file = broken / "mylab" / "row_softmax.py"
    file.write_text(file.read_text().replace("RowSoftmax(axis=", "RowSoftmax(axes="))
    run = dfcompile(str(SOFTMAX), "--pes", "16", "--expand", "Softmax=one-kernel", packages=broken)

    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    fault = "in expansion mylab.row_softmax.one_kernel: RowSoftmax has no field 'axes' (did you mean 'axis'?)"
    assert fault in run.stderr


def test_two_plug_ins_that_claim_one_name_are_both_named(packages: Path, tmp_path: Path) -> None:
    rival = tmp_path / "rival"
    shutil.copytree(PLUGIN, rival)
    (rival / "mylab").rename(rival / "otherlab")
    project = rival / "pyproject.toml"
    project.write_text(project.read_text().replace("mylab", "otherlab"))
    both = tmp_path / "packages"
    shutil.copytree(packages, both)
    install(rival, both)
    run = dfcompile("expansions", packages=both)

    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "mylab.matmul_rows" in run.stderr
    assert "otherlab.matmul_rows" in run.stderr
