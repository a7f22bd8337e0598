"""Commands, files and fields that documents show: taken anew, so that no document shows what is not so.

``python -m tests.documents`` writes what the commands print, the files hold and the records say now, and the table of
the canonical operators.
"""

import io
import re
import shlex
from contextlib import chdir, redirect_stdout
from pathlib import Path

from dfcompile.cli import main as cli
from dfcompile.lowering.operators import SHIPPED
from dfcompile.lowering.operators.description import fields_of, formula_of
from dfcompile.report.design.figures import DesignReport
from dfcompile.report.field_table import field_table, records_in
from dfcompile.report.figures import Report

ROOT = Path(__file__).parent.parent
DOCUMENTS = (ROOT / "README.md", ROOT / "examples" / "lenet" / "README.md")
FIELDS_DOCUMENT = ROOT / "docs" / "report-format.md"
# A comment that names a record, and the table of its fields.
FIELDS = re.compile(r"^<!-- fields of (?P<record>\w+) -->\n\n(?:\|.*\n)*", re.MULTILINE)
RECORDS = {record.__name__: record for report in (Report, DesignReport) for record in records_in(report).values()}
# A fenced block whose first line is a command.
SHOWN = re.compile(r"^```\n\$ dfcompile (?P<words>.*)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
SESSION = ROOT / "docs" / "python-api.md"
# Code, and what it prints; what one block defines the next ones know.
CODE = re.compile(r"^```python\n(?P<code>(?:.*\n)*?)```\n\nprints\n\n```\n(?:.*\n)*?```$", re.MULTILINE)
# A fenced block whose first line names the file whose content follows.
CONTENT = re.compile(r"^```python\n# (?P<file>[\w/.]+)\n(?:(?:.*\n)*?)```$", re.MULTILINE)

CANONICAL_OPERATORS = ROOT / "docs" / "canonical-operators.md"
TABLE_BEGIN, TABLE_END = "<!-- from here on: python -m tests.documents -->\n", "<!-- end -->\n"


def with_canonical_operators(text: str) -> str:
    """Return a document with the canonical operators as their classes describe them now."""
    before, begin, rest = text.partition(TABLE_BEGIN)
    _, end, after = rest.partition(TABLE_END)
    assert begin
    assert end
    sections = [
        f"\n## {name}\n\n{_code(formula_of(operator))}\n\n| field | value | default | meaning |\n|---|---|---|---|\n"
        + "".join(
            f"| `{field.name}` | {_cell(field.values)} | {field.default and f'`{field.default}`'} "
            f"| {_cell(_code(field.meaning))} |\n"
            for field in fields_of(operator)
        )
        for name, operator in sorted(SHIPPED.items())
    ]
    return before + begin + "".join(sections) + "\n" + end + after


def _code(text: str) -> str:
    return text.replace("``", "`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def shown_now(text: str) -> str:
    """Return a document with the output that its commands print and the content that its files hold now."""
    return CONTENT.sub(_content_again, SHOWN.sub(_shown_again, text))


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


def _content_again(block: re.Match[str]) -> str:
    return f"```python\n# {block['file']}\n{(ROOT / block['file']).read_text()}```"


def _shown_again(block: re.Match[str]) -> str:
    output = _output(shlex.split(block["words"]))
    return f"```\n$ dfcompile {block['words']}\n{output}```"


def _output(words: list[str]) -> str:
    with chdir(ROOT), redirect_stdout(io.StringIO()) as printed:
        status = cli.main(words)
    assert status == 0, words
    return printed.getvalue()


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(shown_now(document.read_text()))
    SESSION.write_text(session_now(SESSION.read_text()))
    FIELDS_DOCUMENT.write_text(fields_now(FIELDS_DOCUMENT.read_text()))
    CANONICAL_OPERATORS.write_text(with_canonical_operators(CANONICAL_OPERATORS.read_text()))
