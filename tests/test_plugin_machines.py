"""Topologies, solvers, systems and front ends of third parties: installed for real, used by the command line."""

import json
import shutil
from pathlib import Path

import pytest

from tests.test_plugin_package import PLUGIN, dfcompile, install, model, packages

__all__ = ["model", "packages"]  # fixtures


@pytest.fixture(scope="module")
def broken(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the plug-in, a solver that returns half of a chain, and a system that is no system."""
    source = tmp_path_factory.mktemp("badlab")
    (source / "badlab" / "systems").mkdir(parents=True)
    (source / "badlab" / "__init__.py").write_text("")
    (source / "badlab" / "half.py").write_text(
        "from dfcompile.dfmodel_backend.fusion.fusion_solver import fusion_solver\n\n\n"
        "@fusion_solver('half', is_exact=True, source='badlab24')\n"
        "def half(problem):\n"
        "    return (1,)\n"
    )
    (source / "badlab" / "systems" / "__init__.py").write_text("")
    (source / "badlab" / "systems" / "broken.yaml").write_text("name: broken\nchipz: 3\n")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
        '[project]\nname = "badlab"\nversion = "1.0"\n\n'
        '[project.entry-points."dfcompile.solvers"]\nbadlab = "badlab.half"\n\n'
        '[project.entry-points."dfcompile.systems"]\nbadlab = "badlab.systems"\n\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["badlab"]\n'
    )
    both = tmp_path_factory.mktemp("both")
    shutil.copytree(packages, both, dirs_exist_ok=True)
    install(source, both)
    return both


def test_a_model_of_theirs_runs_on_their_system_by_their_solver(packages: Path, tmp_path: Path) -> None:
    network = {"inputs": 64, "layers": [{"weights": [[0.5] * 64] * 64, "activation": "Relu"}] * 2}
    (tmp_path / "net.layers").write_text(json.dumps(network))
    report = tmp_path / "report.json"
    run = dfcompile(str(tmp_path / "net.layers"), "--pes", "16", "--system", "mylab_row", "--chips", "4", "--solver",
                    "greedy", "--format", "json", "-o", str(report), packages=packages)  # fmt: skip

    assert run.returncode == 0, run.stderr
    found = json.loads(report.read_text())
    assert [result["mapping"]["perfect_streams"]["solver"] for result in found["results"]] == ["greedy"]
    assert "mylab row" in json.dumps(found["assumptions"])


def test_listings_show_them_with_their_origin(packages: Path) -> None:
    systems = dfcompile("systems", packages=packages).stdout
    plugins = dfcompile("plugins", packages=packages).stdout

    assert any({"mylab_row", "8", "mylab.systems"} <= set(line.split()) for line in systems.splitlines())
    for name, origin in (("line", "mylab.line"), ("greedy", "mylab.greedy"), (".layers", "mylab.layers")):
        assert any(line.split() == [name, origin] for line in plugins.splitlines()), name


def test_a_wrong_chain_and_a_broken_system_are_their_packages_fault(broken: Path, model: str) -> None:
    solved = dfcompile(model, "--pes", "16", "--expand", "published", "--solver", "half", packages=broken)
    system = dfcompile(model, "--pes", "16", "--system", "broken", packages=broken)
    listed = dfcompile("systems", packages=broken)

    assert solved.returncode == 1
    assert solved.stderr.startswith("dfcompile: error: in solver badlab.half.half: chain: found kernels ")
    assert system.returncode == 1
    assert system.stderr.startswith("dfcompile: error: badlab.systems:broken.yaml:2: unknown key 'chipz' (did you mean")
    assert listed.returncode == 0
    assert "badlab.systems:broken.yaml:2: unknown key 'chipz'" in listed.stderr
    assert "mylab_row" in listed.stdout
    assert "badlab" not in listed.stdout


def test_two_packages_with_systems_of_one_name_are_both_named(packages: Path, tmp_path: Path) -> None:
    rival = tmp_path / "rival"
    shutil.copytree(PLUGIN, rival)
    for path in rival.rglob("*.py"):
        if path.parent.name != "systems":
            path.unlink()
    (rival / "mylab").rename(rival / "otherlab")
    project = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
    project += '[project]\nname = "otherlab"\nversion = "1.0"\n\n[project.entry-points."dfcompile.systems"]\n'
    project += 'otherlab = "otherlab.systems"\n\n[tool.hatch.build.targets.wheel]\npackages = ["otherlab"]\n'
    (rival / "pyproject.toml").write_text(project)
    (rival / "otherlab" / "__init__.py").write_text("")
    both = tmp_path / "packages"
    shutil.copytree(packages, both)
    install(rival, both)
    run = dfcompile("systems", packages=both)

    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "system 'mylab_row': claimed by 'mylab.systems' and by 'otherlab.systems'" in run.stderr
