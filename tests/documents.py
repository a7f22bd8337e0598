"""Commands and files that documents show: taken anew, so that no document shows what is not so.

``python -m tests.documents`` writes what the commands print and the files hold now, and the table of the canonical
operators.
"""

import io
import re
import shlex
from contextlib import chdir, redirect_stdout
from pathlib import Path

from dfcompile.cli import main as cli
from dfcompile.lowering.operators import SHIPPED
from dfcompile.lowering.operators.description import fields_of, formula_of

ROOT = Path(__file__).parent.parent
DOCUMENTS = (ROOT / "README.md", ROOT / "examples" / "lenet" / "README.md")
# A fenced block whose first line is a command.
SHOWN = re.compile(r"^```\n\$ dfcompile (?P<words>.*)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
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
    CANONICAL_OPERATORS.write_text(with_canonical_operators(CANONICAL_OPERATORS.read_text()))
