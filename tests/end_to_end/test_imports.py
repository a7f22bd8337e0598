"""What commands import, and what they set before: each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("dace", "google.protobuf", "networkx", "numpy", "onnx", "pulp", "pydantic", "rich", "sympy", "torch")
LISTED = "print([name for name in heavy if name in sys.modules])"


def printed(code: str, *words: str) -> list[str]:
    """Return the lines that a program prints."""
    command = [sys.executable, "-c", f"import sys; from dfcompile.cli.main import main; {code}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_help_imports_nothing_heavy_and_a_schedule_of_a_file_no_model(tmp_path: Path) -> None:
    """Half of the time of a schedule would be imports."""
    file = tmp_path / "two.dag"
    file.write_text("dfcompile-dag/1 two\nelementwise a\nelementwise b\nedge a -> b volume=4\n")
    help_alone = f"heavy = {HEAVY}; main(['--help']); {LISTED}"
    models = f"heavy = ('dace', 'onnx', 'sympy', 'torch'); main(['schedule', sys.argv[1], '--pes', '2']); {LISTED}"

    lines = printed(f"{help_alone}; {models}", str(file))

    assert lines.count("[]") == 2
    assert lines[-1] == "[]"


def test_the_way_through_is_imported_without_what_makes_graphs() -> None:
    assert printed(
        f"heavy = ('dace', 'networkx', 'onnx', 'pulp', 'sympy', 'torch'); import dfcompile.driver; {LISTED}"
    ) == ["[]"]


def test_times_of_language_models_import_nothing_heavy_and_no_solver() -> None:
    one = "heavy = ('torch', 'transformers', 'onnx', 'dace', 'pandas', 'networkx', 'pydantic'); "
    one += f"main(['llm', '--decode', '64', '-o', '/dev/null']); {LISTED}; "
    several = "heavy = ('torch', 'transformers', 'onnx', 'dace', 'pandas', 'scipy', 'pulp', 'networkx', 'highspy', "
    several += "'ortools'); words = ['llm', '--config', 'llama-3.1-70b', '--chips', '8', '--decode', '4096x64', "
    several += "'-o', '/dev/null', '--system']; print(*(main([*words, system]) for system in ('h100', 'h100-sxm'))); "

    assert printed(f"{one}{several}{LISTED}") == ["[]", "0 0", "[]"]


@pytest.mark.parametrize(("asked", "given"), [(None, "1"), ("3", "3")])
def test_products_have_one_thread_but_for_the_users_own_number(asked: str | None, given: str) -> None:
    code = "import os; from dfcompile.cli.main import main; main(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if asked is not None:
        env["OPENBLAS_NUM_THREADS"] = asked
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)

    assert done.stdout.splitlines()[-1] == given


def test_a_model_without_pictures_and_constants_needs_neither_of_their_modules() -> None:
    """A tenth of a second."""
    names = ("dfcompile.visualization.gantt.chart", "dfcompile.frontend.dace_program.walk", "onnx.reference", "xml.sax")
    listed = f"print([m for m in {names} if m in sys.modules])"
    imports = "dfcompile.cli.commands.compile_model, dfcompile.cli.emissions, dfcompile.api.compile_model"
    code = f"import sys, {imports}; from dfcompile.frontend import FILE_KINDS; FILE_KINDS.collect(); {listed}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
