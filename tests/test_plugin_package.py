"""A package of third parties: installed for real, found by the command line, checked by its own test.

Commands run in this process, which forgets the package afterwards; that a new process finds it is told once.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

import onnx
import pytest
from onnx import parser

from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.fusion.fusion_solver import fusion_solvers
from dfcompile.dfmodel_backend.machine.named_systems import named_systems
from dfcompile.dfmodel_backend.machine.network.topologies import dimension_kinds
from tests.onnx_files import save_convolution
from tests.unit.plugins.installed import write_package
from tests.written_models import HEADER

PLUGIN = Path(__file__).parent / "plugin"


def install(source: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--upgrade", "--target", str(target), str(source)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def environment_with(packages: Path, **variables: str) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(packages), inherited))), **variables}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def dfcompile(*arguments: str, packages: Path, **variables: str) -> Ended:
    """Run a command with a folder of packages in front of all others."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.syspath_prepend(str(packages))
        for name, value in variables.items():
            patch.setenv(name, value)
        forget_plugins(packages)
        try:
            status = main(arguments)
        finally:
            forget_plugins(packages)
    out.seek(0)
    err.seek(0)
    return Ended(status, out.read(), err.read())


def forget_plugins(packages: Path) -> None:
    """Forget what this process knows of plug-ins, and the modules of those in a folder."""
    for known in (dimension_kinds, fusion_solvers, named_systems):
        known.cache_clear()
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(packages)):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """LeNet's first convolution."""
    return str(save_convolution(tmp_path_factory.mktemp("models") / "convolution.onnx"))


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A softmax along a middle axis, between two other operators."""
    text = "g (float[2,7,3,4] x) => (float[2,7,3,4] y)"
    text += " { [exp] t = Exp(x) [softmax] u = Softmax<axis=1>(t) [relu] y = Relu(u) }"
    path = tmp_path_factory.mktemp("models") / "softmax.onnx"
    onnx.save(parser.parse_model(HEADER + text), str(path))
    return str(path)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the plug-in in it; this environment stays as it is."""
    source = tmp_path_factory.mktemp("source") / "mylab"
    shutil.copytree(PLUGIN, source)
    target = tmp_path_factory.mktemp("packages")
    install(source, target)
    return target


def test_listings_show_the_plug_in_and_its_origin(packages: Path) -> None:
    command = [sys.executable, "-m", "dfcompile", "expansions", "MatMul"]
    expansions = subprocess.run(command, capture_output=True, text=True, env=environment_with(packages), check=True)
    passes = dfcompile("passes", packages=packages)

    assert any(
        "MatMul" in line and "lab-rows" in line and "mylab.matmul_rows" in line
        for line in expansions.stdout.splitlines()
    )
    assert any("memory-only" in line and "mylab.memory_only" in line for line in passes.stdout.splitlines())


def test_expansion_and_pass_of_the_plug_in_lower_a_model(packages: Path, tmp_path: Path, model: str) -> None:
    report = tmp_path / "report.json"
    arguments = (model, "--pes", "16", "--expand", "MatMul=lab-rows,lmv", "--passes", "memory-only", "--verify")
    run = dfcompile(*arguments, "--format", "json", "-o", str(report), packages=packages)

    assert run.returncode == 0, run.stderr
    assert '"MatMul": "lab-rows"' in report.read_text()
    assert '"spilled_elements": 0' in report.read_text()


def test_canonical_operator_of_the_plug_in_is_lowered_and_is_one_kernel(packages: Path, softmax: str) -> None:
    run = dfcompile(softmax, "--pes", "16", "--expand", "Softmax=one-kernel", "--verify", packages=packages)

    assert run.returncode == 0, run.stderr


def test_a_field_that_the_plug_in_misspells_is_named(packages: Path, tmp_path: Path, softmax: str) -> None:
    broken = tmp_path / "packages"
    shutil.copytree(packages, broken)
    file = broken / "mylab" / "row_softmax.py"
    file.write_text(file.read_text().replace("RowSoftmax(axis=", "RowSoftmax(axes="))
    run = dfcompile(softmax, "--pes", "16", "--expand", "Softmax=one-kernel", packages=broken)

    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    fault = "in expansion mylab.row_softmax.one_kernel: RowSoftmax has no field 'axes' (did you mean 'axis'?)"
    assert fault in run.stderr


SAMPLES = sorted(path.name for path in PLUGIN.glob("test_*.py"))


def test_the_plug_in_passes_the_checks_for_everybody(packages: Path) -> None:
    samples = [str(PLUGIN / sample) for sample in SAMPLES]
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *samples]
    environment = environment_with(packages)
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)

    assert run.returncode == 0, run.stdout
    assert all(f"PASSED tests/plugin/{sample}" in run.stdout for sample in SAMPLES)


def test_each_sample_is_one_file_with_one_test() -> None:
    files = {path.stem for path in (PLUGIN / "mylab").glob("*.py")} - {"__init__"}

    assert {f"test_{name}.py" for name in files} <= set(SAMPLES)


def test_kinds_are_listed_with_what_is_found_and_where(packages: Path) -> None:
    run = dfcompile("plugins", packages=packages)
    lines = [line.split() for line in run.stdout.splitlines()]

    assert run.returncode == 0, run.stderr
    for name, origin in (
        ("canonical.MatMul=lab-rows", "mylab.matmul_rows"),
        ("onnx.Softmax=unshifted", "mylab.softmax_unshifted"),
        ("memory-only", "mylab.memory_only"),
        ("through-memory", "mylab.through_memory"),
        ("slices", "mylab.slices"),
    ):
        assert [name, origin] in lines
    assert "cannot" not in run.stdout


def test_passes_of_the_plug_in_take_options_and_its_partitioner_schedules(
    packages: Path, tmp_path: Path, model: str
) -> None:
    report = tmp_path / "report.json"
    passes = "memory-only{above=4000},through-memory{above=100}"
    run = dfcompile(model, "--pes", "16", "--passes", passes, "--partition", "slices", "--format", "json",
                    "-o", str(report), packages=packages)  # fmt: skip
    misspelt = dfcompile(model, "--pes", "16", "--passes", "memory-only{abov=1}", packages=packages)
    read = json.loads(report.read_text())

    assert run.returncode == 0, run.stderr
    assert read["results"][0]["schedule"]["partition"] == "slices"
    assert read["results"][0].get("expansion_bound") is None
    assert misspelt.returncode == 1
    assert "--passes memory-only: no option 'abov' (did you mean 'above'?)" in misspelt.stderr


BROKEN = """
from dfcompile.lowering import expansion
from dfcompile.lowering.operators import MatMul

@expansion(MatMul, "broken", source="lab")
def broken(op, build):
    raise ZeroDivisionError("of the plug-in")
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with a module that cannot be imported and an expansion that raises."""
    folder = tmp_path_factory.mktemp("broken")
    modules = {"nowhere.py": "import nothing_of_this_name", "parts.py": BROKEN}
    write_package(folder, "brokenlab", modules, ["dfcompile.expansions", "dfcompile.passes", "dfcompile.partitioners"])
    return folder


def line_of(kind: str) -> str:
    module = "cannot import 'brokenlab.nowhere': ModuleNotFoundError: No module named 'nothing_of_this_name'"
    return f"entry point dfcompile.{kind}:brokenlab: {module}"


def test_a_module_that_cannot_be_imported_stops_no_command_that_does_without_it(
    broken: Path, tmp_path: Path, model: str
) -> None:
    report = tmp_path / "report.json"
    for command, kind in (("passes", "passes"), ("expansions", "expansions"), ("ops", "expansions")):
        run = dfcompile(command, packages=broken)
        assert (run.returncode, run.stderr) == (0, f"dfcompile: warning: {line_of(kind)}\n")
    listed = dfcompile("plugins", packages=broken)
    run = dfcompile(model, "--pes", "16", "--format", "json", "-o", str(report), packages=broken)
    plain = dfcompile(model, "--pes", "16", "--format", "json", packages=tmp_path)
    with_faults, without = json.loads(report.read_text()), json.loads(plain.stdout)
    warnings = with_faults.pop("warnings")

    assert listed.returncode == 0
    assert line_of("expansions") in " ".join(listed.stdout.split())
    assert run.returncode == 0, run.stderr
    assert [line_of(kind) for kind in ("expansions", "passes", "partitioners")] == warnings[:3]
    assert warnings[3].startswith("in expansion brokenlab.parts.broken: ZeroDivisionError: of the plug-in: left out of")
    assert run.stderr.splitlines() == [f"dfcompile: warning: {warning}" for warning in warnings]
    for read in (with_faults, without):
        read["assumptions"] = [each for each in read["assumptions"] if each["name"] != "ideal"]
        for result in read["results"]:
            result["mapping"]["perfect_streams"].pop("solver_s")
            for name in ("ideal", "ideal_time_s"):  # nothing is known of what the broken one would do
                result["mapping"].pop(name)
    assert with_faults == without


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [(("--expand", "MatMul=mine"), "expansions"), (("--passes", "mine"), "passes"),
     (("--partition", "mine"), "partitioners")],
)  # fmt: skip
def test_who_names_what_only_a_broken_module_could_offer_is_told(
    broken: Path, arguments: tuple[str, str], kind: str, model: str
) -> None:
    run = dfcompile(model, "--pes", "16", *arguments, packages=broken)

    assert run.returncode == 1
    assert line_of(kind) in run.stderr
    assert run.stderr.count("\n") == 1


def test_what_a_plug_in_raises_is_one_line_and_its_traceback_for_its_author(broken: Path, model: str) -> None:
    arguments = (model, "--pes", "16", "--expand", "MatMul=broken")
    run = dfcompile(*arguments, packages=broken)
    traced = dfcompile(*arguments, packages=broken, DFCOMPILE_TRACEBACK="1")

    line = "dfcompile: error: in expansion brokenlab.parts.broken: ZeroDivisionError: of the plug-in"
    assert (run.returncode, traced.returncode) == (1, 1)
    assert run.stderr == f"{line} (DFCOMPILE_TRACEBACK=1 in the environment shows where)\n"
    assert traced.stderr.startswith(f"{line}\nTraceback (most recent call last):\n")
    assert 'raise ZeroDivisionError("of the plug-in")' in traced.stderr


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
