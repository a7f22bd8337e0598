"""The rules that hold the project together: imports, sizes, names, sources, documents."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from dfcompile.cli import main as cli
from dfcompile.cli.listings import KINDS
from dfcompile.report.design.figures import design_schema
from dfcompile.report.figures import report_schema
from dfcompile.report.plain_values import Json
from tests.syntax_trees import tree_of

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "dfcompile").rglob("*.py"))
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
UNIT_TESTS = ROOT / "tests" / "unit"
LONGEST_MODULE = 400  # lines
FEWEST_MODULES = 250
NAMELESS = ("common", "helpers", "manager", "misc", "utils")
CITATION = re.compile(r"""source=["']([\w-]+)["']|\[([a-z]+(?:-[a-z]+)?\d\d[a-z]?)(?=[\]:, ])""")

# One import that breaks each contract: contract, module to plant, what it must not import.
PLANTED = (
    ("imports point back along the flow of data", "frontend/planted.py", "dfcompile.lowering"),
    ("rooms of the frontend", "frontend/onnx/planted.py", "dfcompile.frontend.onnx_model"),
    ("rooms of lowering", "lowering/operators/planted.py", "dfcompile.lowering.expansions.matmul"),
    ("rooms of the canonical DAG", "canonical_dag/analysis.py", "dfcompile.canonical_dag.builder"),
    ("rooms of the scheduler", "scheduler/bounds/planted.py", "dfcompile.scheduler.partitioners.spatial"),
    ("rooms of the back end", "dfmodel_backend/machine/planted.py", "dfcompile.dfmodel_backend.fusion.fuse"),
    ("rooms of circuits", "rtl/signals.py", "dfcompile.rtl.folder"),
    ("rooms of the page", "page/views/planted.py", "dfcompile.page.document"),
    ("rooms of language models", "language_models/machines/planted.py", "dfcompile.language_models.times"),
    ("the canonical DAG imports no other stage", "canonical_dag/planted.py", "dfcompile.frontend"),
    ("I/O bounds know nothing but the canonical DAG", "io_bounds/planted.py", "dfcompile.scheduler"),
    ("rooms of the I/O bounds", "io_bounds/einsum/planted.py", "dfcompile.io_bounds.fusion"),
    ("scheduler and back end never see an SDFG", "scheduler/planted.py", "dace"),
    (
        "of the back end only attained mappings and their checker ask the scheduler",
        "dfmodel_backend/inter_chip/planted.py",
        "dfcompile.scheduler",
    ),
    ("explorations and the driver know nothing of each other", "exploration/planted.py", "dfcompile.driver"),
    ("torch and onnx stay in the frontend", "lowering/planted.py", "onnx"),
    (
        "the audit shares no code with what makes figures",
        "audit/planted.py",
        "dfcompile.scheduler.evaluation",
    ),
)


def lint_imports(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
    )
    return done.stdout + done.stderr


def test_every_import_contract_holds_and_fails_on_a_planted_violation(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dfcompile", tmp_path / "dfcompile", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    contracts = {
        found["name"]
        for found in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    }
    before = lint_imports(tmp_path)
    for _, module, forbidden in PLANTED:
        (tmp_path / "dfcompile" / module).write_text(f"import {forbidden}\n")
    after = lint_imports(tmp_path)

    assert contracts == {contract for contract, _, _ in PLANTED}
    for contract in contracts:
        assert f"{contract} KEPT" in before
        assert f"{contract} BROKEN" in after


def test_no_module_imports_one_that_imports_it() -> None:
    """Imports inside functions and those for types alone count, too."""
    names = {module: ".".join(module.relative_to(ROOT).with_suffix("").parts) for module in MODULES}
    files = {name.removesuffix(".__init__"): module for module, name in names.items()}
    imports = {name: set(imported(file, files)) - {name} for name, file in files.items()}
    TopologicalSorter(imports).prepare()  # names the modules of a circle
    imports["dfcompile.errors"].add("dfcompile.driver")

    assert imports["dfcompile.api.runs"] >= {"dfcompile.report.figures", "dfcompile.driver"}
    with pytest.raises(CycleError, match="cycle"):
        TopologicalSorter(imports).prepare()


def imported(file: Path, names: Collection[str]) -> Iterator[str]:
    """Yield which modules of the package one imports; of a package from which only modules come, these."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in names:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (part if part in names else f"{node.module}" for part in parts)


def test_modules_are_one_concept_each() -> None:
    too_long = {name_of(module): lines for module in MODULES if (lines := lines_of(module)) > LONGEST_MODULE}
    nameless = [name_of(module) for module in MODULES if module.stem in NAMELESS]

    assert len(MODULES) > FEWEST_MODULES
    assert too_long == {}
    assert nameless == []


def lines_of(module: Path) -> int:
    return len(module.read_text().splitlines())


def name_of(module: Path) -> str:
    return str(module.relative_to(ROOT))


def test_different_numbers_are_found_by_sorting() -> None:
    """`numpy.unique` of an array alone fills a hash table: `dfcompile.distinct` is faster, of millions far faster."""
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            match node:
                case ast.Call(ast.Attribute(ast.Name("np"), "unique"), keywords=[]):
                    pytest.fail(f"{module.relative_to(ROOT)}:{node.lineno}: np.unique, expected distinct")


def test_unit_tests_stand_in_the_room_of_what_they_test() -> None:
    rooms = {module.parent.relative_to(ROOT / "dfcompile") for module in MODULES}
    folders = {test.parent.relative_to(UNIT_TESTS) for test in UNIT_TESTS.rglob("*.py")}
    at_the_root = {f"test_{module.name}" for module in MODULES if module.parent == ROOT / "dfcompile"}

    assert folders - rooms == set()
    assert {test.name for test in UNIT_TESTS.glob("*.py")} - at_the_root == set()


def test_every_cited_source_stands_in_the_references() -> None:
    listed = set(re.findall(r"^([\w-]+)\n:   ", (ROOT / "docs" / "references.md").read_text(), re.MULTILINE))
    files = [*MODULES, *(ROOT / "dfcompile").rglob("*.yaml"), *DOCUMENTS]
    cited = {
        key: file.relative_to(ROOT)
        for file in files
        for match in CITATION.finditer(file.read_text())
        for key in match.groups()
        if key
        and "tests/plugin" not in file.read_text()  # a document that shows the plug-in cites the plug-in's source
    }

    assert {"dematteis23", "ko24", "onnx"} <= set(cited)
    assert {key: file for key, file in cited.items() if key not in listed} == {}


def test_command_line_document_has_every_command() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text()

    for command in cli.COMMANDS:
        assert f"dfcompile {command}" in text or f"| {command}" in text


def test_report_document_has_every_field_of_the_schema() -> None:
    documented = set(re.findall(r"`([a-z_]+)(?:\[\])?`", (ROOT / "docs" / "report-format.md").read_text()))

    assert (field_names(report_schema()) | field_names(design_schema())) - documented == set()


def field_names(schema: Json) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    names: set[str] = set()
    properties = schema.get("properties")
    if isinstance(properties, dict):
        names |= set(properties)
        for part in properties.values():
            names |= field_names(part)
    return names | field_names(schema.get("items"))


def test_names_of_the_package_in_documents_exist() -> None:
    entry_point_groups = {group for listed in KINDS for group in listed().groups}
    named = {
        name: document.relative_to(ROOT)
        for document in DOCUMENTS
        for name in re.findall(r"`(dfcompile(?:\.[A-Za-z_]+)+)(?:\([^`]*\))?`", document.read_text())
        if name not in entry_point_groups
    }

    assert {name: document for name, document in named.items() if not exists(name)} == {}


def exists(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return bool(module) and hasattr(importlib.import_module(module), attribute)
    return True


def test_every_kind_of_plug_in_is_in_the_documents() -> None:
    text = (ROOT / "docs" / "plugins" / "index.md").read_text()

    for kind in (listed() for listed in KINDS):
        assert f"`{kind.groups[0]}`" in text, kind.plural


def test_documents_name_no_file_that_does_not_exist() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([\w/.-]+\.(?:md|py))\)", document.read_text()):
            assert (document.parent / target).is_file(), f"{document.name}: {target}"


def test_system_document_has_every_key_of_the_shipped_systems() -> None:
    text = (ROOT / "docs" / "system-files.md").read_text()
    keys = {
        key
        for file in (ROOT / "dfcompile" / "dfmodel_backend" / "machine" / "systems").glob("*.yaml")
        for key in re.findall(r"(\w+):(?= |$)", figures_of(file), re.MULTILINE)
    }

    assert {"frequency_ghz", "bandwidth_gb_per_s", "link_bandwidth_gb_per_s"} <= keys
    assert {key for key in keys if not re.search(rf"[`.]{key}[`\[]", text)} <= {"accelerator", "dram", "network"}


def figures_of(system_file: Path) -> str:
    """The lines before the sources, without comments."""
    return re.sub(r"#.*", "", system_file.read_text().partition("\nsources:")[0])
