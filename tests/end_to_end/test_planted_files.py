"""What another user has put where DaCe looks is not read, not run and not written to."""

import getpass
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import dace
import numpy as np
import pytest

from dfcompile.errors import VerificationError
from dfcompile.frontend import Program
from dfcompile.host import private_folder
from dfcompile.lowering import LoweringPass, apply_passes, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.execution import compiled_run as execution
from dfcompile.records import replace
from tests.onnx_files import save_convolution
from tests.onnx_text import program_from_text

ROOT = Path(__file__).parent.parent.parent
PLANTED = "open({mark!r}, 'a').write('ran')\n"


def plant(folder: Path, mark: Path) -> None:
    """Put code wherever DaCe takes some from the current folder."""
    (folder / ".dacecache" / "ai-environments").mkdir(parents=True)
    (folder / ".dacecache" / "ai-environments" / "dace_ai_env_planted.py").write_text(PLANTED.format(mark=str(mark)))
    (folder / "planted").mkdir()
    for name in ("yaml", "sympy", "planted_hook"):  # what DaCe, or we after it, import
        (folder / "planted" / f"{name}.py").write_text(PLANTED.format(mark=str(mark)))
    (folder / ".dace.conf").write_text(
        f"external_transformations_path: {folder / 'planted'}\n"
        "compiler:\n  cpu:\n    executable: /bin/false\n    args: -planted\n"
        "store_history: true\n"
    )


def run(code: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    ["dfcompile.frontend.onnx_model", "dfcompile.canonical_dag.extraction.scopes", "dfcompile.testing.expansions"],
)
def test_configuration_in_the_current_folder_is_not_read_whatever_imports_dace_first(
    module: str, tmp_path: Path
) -> None:
    plant(tmp_path, tmp_path / "mark")
    code = (
        f"import {module}, dace, os; from dace.config import Config; import dace.libraries.ai; "
        "print(Config.get('compiler', 'cpu', 'args'), [p for p in sys.path if 'planted' in p], os.getcwd())"
    )
    printed = run(code, tmp_path)

    assert not (tmp_path / "mark").exists()
    assert "-planted" not in printed
    assert printed.endswith(f"[] {tmp_path}")


def test_the_users_own_configuration_counts(tmp_path: Path) -> None:
    (tmp_path / "mine.conf").write_text("compiler:\n  cpu:\n    args: -O1 -mine\n")
    code = "import dfcompile.driver; from dace.config import Config; print(Config.get('compiler', 'cpu', 'args'))"

    assert run(code, tmp_path, DACE_CONFIG="mine.conf") == "-O1 -mine"
    assert run(code, tmp_path, DACE_compiler_cpu_args="-O0") == "-O0"


def test_verified_model_leaves_nothing_in_its_folder_and_runs_nothing_from_it(tmp_path: Path) -> None:
    plant(tmp_path, tmp_path / "mark")
    save_convolution(tmp_path / "conv.onnx", shape=(1, 1, 6, 6))
    (tmp_path / "tmp").mkdir(mode=0o700)
    before = sorted(tmp_path.rglob("*"))
    words = ["conv.onnx", "--pes", "2", "--expand", "published", "--partition", "sb-lts", "--verify"]
    code = f"from dfcompile.cli.main import main; assert main({words}) == 0"
    run(code, tmp_path, TMPDIR=str(tmp_path / "tmp"))

    assert sorted(tmp_path.rglob("*")) == before


def test_planted_build_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DaCe's cache is a folder named after the user, in a shared one: whoever made it first owns it."""
    planted = tmp_path / f"dace_build_cache_{getpass.getuser()}"
    (planted / "pch").mkdir(parents=True)
    (planted / "commands").mkdir()
    (planted / "commands" / "planted.json").write_text("[]")
    monkeypatch.setenv("DACE_BUILD_CACHE_DIR", str(tmp_path))
    used: list[Path] = []

    def watched(_: object) -> object:
        from dace.codegen.compiler import build_cache_root

        used.append(Path(build_cache_root()))
        raise InterruptedError

    monkeypatch.setattr(execution, "_compiled", watched)
    monkeypatch.setattr(execution, "process_folder", private_folder.process_folder)
    monkeypatch.setattr(execution, "_BUILDS", itertools.count())
    table = registered_expansions()
    program = program_from_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    maps = lower_to_maps(lower_to_canonical(program, table), table)
    for _ in range(2):  # the caches are in use from the second time on
        with pytest.raises(InterruptedError):
            execution.run_program(maps, {"x": np.array([-1, 1], np.float32)})

    assert len(used) == 2
    for root in used:
        assert planted not in (root, *root.parents)
        assert root.parent.parent == Path(tempfile.gettempdir()).resolve()
    private_folder.require_private(used[-1].parent)
    assert used[-1].parent == private_folder.process_folder()
    assert os.environ["DACE_BUILD_CACHE_DIR"] == str(tmp_path)


def test_what_dace_saves_of_an_invalid_program_does_not_follow_a_planted_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes ``_dacegraphs/invalid.sdfgz`` into the current folder."""
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "_dacegraphs").mkdir()
    (tmp_path / "_dacegraphs" / "invalid.sdfgz").symlink_to(tmp_path / "precious")
    monkeypatch.chdir(tmp_path)

    def broken(program: Program) -> Program:
        changed = dace.SDFG.from_json(program.sdfg.to_json())
        changed.start_state.add_access("nowhere")
        return replace(program, sdfg=changed)

    program = program_from_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(VerificationError, match="in pass 'broken': invalid SDFG"):
        apply_passes(program, [LoweringPass("broken", broken, "test", "dfcompile.planted", level=program.level)])

    assert (tmp_path / "precious").read_text() == "mine"
    assert Path.cwd() == tmp_path
