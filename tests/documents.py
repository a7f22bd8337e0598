"""Commands, files and pictures that documents show: taken anew, so that no document shows what is not so.

A fenced block that begins with ``$ `` shows a command and all that it prints; several may follow one another. (A block
of commands alone says what may be typed, and promises nothing; for a new one write anything as its output.) The
commands of a document run in order in one folder, which has the examples and keeps what they write. A picture
``pictures/NAME`` is the file of that name that a command of the document wrote.

``python -m tests.documents`` writes what the commands print and draw and the files hold now, the tables of the
canonical operators and of the fields of reports, and what the code of the Python API prints.
"""

import inspect
import io
import re
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager, chdir, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from dfcompile.cli import main as cli
from dfcompile.cli.commands.compile_model import Emissions
from dfcompile.frontend.file_kinds import python_file
from dfcompile.lowering.operators import SHIPPED, CanonicalOperator
from dfcompile.lowering.operators.base import fields_of
from dfcompile.options import ExploreOptions, Option, Options, Outputs, Pictures, RowOutputs, options_of
from dfcompile.options.commands import BoundsOptions, BoundsOutputs
from dfcompile.options.language_models import LanguageOptions, LanguageOutputs
from dfcompile.options.option import defaults_of
from dfcompile.report.actor_graphs import ActorsReport
from dfcompile.report.design.figures import DesignReport
from dfcompile.report.figures import Report
from tests.field_table import field_table, records_in

ROOT = Path(__file__).parent.parent
# A fenced block whose first line is a command. What follows the first bar is a shell's: `| head`.
SHOWN = re.compile(r"^```(?P<language>(?:console)?)\n(?P<session>(?:\$ .*\n)+(?!\$ |```$)(?:.*\n)*?)```$", re.MULTILINE)
FIELDS_DOCUMENT = ROOT / "docs" / "report-format.md"
# A comment that names a record, and the table of its fields.
FIELDS = re.compile(r"^<!-- fields of (?P<record>\w+) -->\n\n(?:\|.*\n)*", re.MULTILINE)
REPORTS = (Report, DesignReport, ActorsReport)
RECORDS = {record.__name__: record for report in REPORTS for record in records_in(report).values()}
SESSION = ROOT / "docs" / "python-api.md"
# Code, and what it prints; what one block defines the next ones know.
CODE = re.compile(r"^```python\n(?P<code>(?:.*\n)*?)```\n\nprints\n\n```\n(?:.*\n)*?```$", re.MULTILINE)
# A fenced block whose first line names the file whose content follows.
CONTENT = re.compile(r"^```python\n# (?P<file>[\w/.]+)\n(?:(?:.*\n)*?)```$", re.MULTILINE)
# A command that reads an example alone, and writes nothing: two documents may show it, and it is run once.
ANYWHERE = re.compile(r"dfcompile examples/\S+(?: --(?:pes|expand|show) \S+)*")
PICTURE = re.compile(r"\((?P<path>(?:\.\./)*pictures/(?P<name>[\w.-]+))\)")

# A comment that names a command, and the table of its options.
OPTIONS = re.compile(r"^<!-- options of (?P<command>\w+) -->\n\n(?:\|.*\n)*", re.MULTILINE)
OPTION_TABLES = {
    "compile": (Options, Emissions, Pictures, Outputs),
    "explore": (ExploreOptions, RowOutputs),
    "bounds": (BoundsOptions, BoundsOutputs),
    "llm": (LanguageOptions, LanguageOutputs),
}
OPTION_DOCUMENTS = tuple(ROOT / "docs" / f"{name}.md" for name in ("command-line", "exploration", "bounds", "llm"))

CANONICAL_OPERATORS = ROOT / "docs" / "canonical-operators.md"
TABLE_BEGIN, TABLE_END = "<!-- from here on: python -m tests.documents -->\n", "<!-- end -->\n"


def with_canonical_operators(text: str) -> str:
    """Return a document with the canonical operators as their classes describe them now."""
    before, begin, rest = text.partition(TABLE_BEGIN)
    _, end, after = rest.partition(TABLE_END)
    assert begin
    assert end
    sections = [
        f"\n## {name}\n\n{_code(_formula(operator))}\n\n| field | value | default | meaning |\n|---|---|---|---|\n"
        + "".join(
            f"| `{field.name}` | {_cell(field.values)} | {field.default and f'`{field.default}`'} "
            f"| {_cell(_code(field.meaning))} |\n"
            for field in fields_of(operator)
        )
        for name, operator in sorted(SHIPPED.items())
    ]
    return before + begin + "".join(sections) + "\n" + end + after


def _formula(operator: type[CanonicalOperator]) -> str:
    """Return what an operator computes: the first line of its docstring."""
    return inspect.cleandoc(operator.__doc__ or "").partition("\n")[0]


def _code(text: str) -> str:
    return text.replace("``", "`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


@dataclass(frozen=True, slots=True)
class Taken:
    """A document as it would be now."""

    text: str
    pictures: Mapping[Path, str]


_EXPORTED_ONCE = cache(python_file._exported)


def examples_exported_once() -> AbstractContextManager[object]:
    """Within, a PyTorch file is exported the first time alone: of a path in a document's folder, the same in all."""
    return patch.object(python_file, "_exported", _EXPORTED_ONCE)


def documents() -> tuple[Path, ...]:
    """Return the documents that show commands."""
    pages = [ROOT / "README.md", *sorted((ROOT / "examples").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return tuple(page for page in pages if SHOWN.search(page.read_text()))


def taken_now(document: Path) -> Taken:
    """Return a document with what its commands print and draw and its files hold now."""
    text = document.read_text()
    with TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        with chdir(folder), examples_exported_once():
            fresh = CONTENT.sub(_content_again, SHOWN.sub(_shown_again, text))
        pictures = {
            (document.parent / found["path"]).resolve(): _written(Path(folder), found["name"])
            for found in PICTURE.finditer(text)
        }
    return Taken(fresh, pictures)


def session_now(text: str) -> str:
    """Return a document with what its code prints now."""
    names: dict[str, object] = {}

    def printed_again(block: re.Match[str]) -> str:
        with chdir(ROOT), redirect_stdout(io.StringIO()) as printed:
            exec(compile(block["code"], str(SESSION), "exec"), names)  # a document of ours
        return f"```python\n{block['code']}```\n\nprints\n\n```\n{printed.getvalue()}```"

    return CODE.sub(printed_again, text)


def fields_now(text: str) -> str:
    """Return a document with the fields that the records of reports have now."""
    return FIELDS.sub(_fields_again, text)


def _fields_again(block: re.Match[str]) -> str:
    return f"<!-- fields of {block['record']} -->\n\n{field_table(RECORDS[block['record']])}"


def options_now(text: str) -> str:
    """Return a document with the options that commands have now."""
    return OPTIONS.sub(_options_again, text)


def _options_again(block: re.Match[str]) -> str:
    rows = [
        f"| {_code_cell(asked, name, said)} | {_cell(' '.join((said.help, *filter(None, (said.more,)))))} |\n"
        for asked in OPTION_TABLES[block["command"]]
        for name, said in options_of(asked).items()
        if not said.is_argument
    ]
    return f"<!-- options of {block['command']} -->\n\n| option | meaning |\n|---|---|\n{''.join(rows)}"


def _code_cell(asked: type, name: str, said: Option) -> str:
    flags = [part for flag in said.flags for part in flag.split("/")]
    value = "|".join(said.choices) if said.choices and not said.is_pair else "" if said.is_flag else said.metavar
    named = ", ".join(f"`{flag}`" for flag in flags[:-1])
    last = f"`{' '.join(filter(None, (flags[-1], value)))}`"
    default = defaults_of(asked).get(name)
    usual = f" ({default})" if isinstance(default, str) and default and not said.is_flag else ""
    return _cell(", ".join(filter(None, (named, last))) + usual)


def _content_again(block: re.Match[str]) -> str:
    return f"```python\n# {block['file']}\n{(ROOT / block['file']).read_text()}```"


def _shown_again(block: re.Match[str]) -> str:
    commands = [line.removeprefix("$ ") for line in block["session"].splitlines() if line.startswith("$ ")]
    session = "".join(f"$ {command}\n{_output(command)}" for command in commands)
    return f"```{block['language']}\n{session}```"


def _output(command: str) -> str:
    program, bar, rest = command.partition(" | ")
    if not program.startswith("dfcompile "):
        return _shell(command, "")
    printed = _printed_anywhere(program) if ANYWHERE.fullmatch(program) else _printed(program)
    return _shell(rest, printed) if bar else printed


def _printed(program: str) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        status = cli.main(shlex.split(program)[1:])
    assert status == 0, program
    return printed.getvalue()


_printed_anywhere = cache(_printed)


def _shell(command: str, text: str) -> str:
    done = subprocess.run(["sh", "-c", command], input=text, capture_output=True, text=True, check=True)
    return done.stdout


def _written(folder: Path, name: str) -> str:
    (file,) = folder.rglob(name)
    return file.read_text()


if __name__ == "__main__":
    for page in documents():
        taken = taken_now(page)
        page.write_text(taken.text)
        for picture, drawing in taken.pictures.items():
            picture.parent.mkdir(exist_ok=True)
            picture.write_text(drawing)
    SESSION.write_text(session_now(SESSION.read_text()))
    FIELDS_DOCUMENT.write_text(fields_now(FIELDS_DOCUMENT.read_text()))
    for page in OPTION_DOCUMENTS:
        page.write_text(options_now(page.read_text()))
    CANONICAL_OPERATORS.write_text(with_canonical_operators(CANONICAL_OPERATORS.read_text()))
