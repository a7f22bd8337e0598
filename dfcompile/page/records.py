"""JSON of a report, asked by the names that lead to a figure; what a report has not is ``None``, empty or nothing."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.host.inputs import parsed_json, read_text
from dfcompile.host.printable import reason_of
from dfcompile.report.plain_values import Json


class Record(Struct, frozen=True):
    """An object of a report's JSON.

    Attributes:
        values: by name.
    """

    values: Mapping[str, Json]

    def at(self, path: str) -> Json:
        """Return what stands at the end of names joined by dots; ``None`` where one is missing."""
        value: Json = dict(self.values)
        for name in path.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    def number(self, path: str) -> float | int | None:
        """Return a number; ``None`` where there is none."""
        value = self.at(path)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, path: str) -> str:
        """Return a text; empty where there is none."""
        value = self.at(path)
        return value if isinstance(value, str) else ""

    def is_set(self, path: str) -> bool:
        """Return whether a value is true."""
        return self.at(path) is True

    def part(self, path: str) -> "Record":
        """Return a record; an empty one where there is none."""
        value = self.at(path)
        return Record(value if isinstance(value, dict) else {})

    def parts(self, path: str) -> tuple["Record", ...]:
        """Return the records of a list; none where there is no list."""
        return tuple(Record(value) for value in self.items(path) if isinstance(value, dict))

    def items(self, path: str) -> tuple[Json, ...]:
        """Return the values of a list; none where there is no list."""
        value = self.at(path)
        return tuple(value) if isinstance(value, list) else ()

    def texts(self, path: str) -> tuple[str, ...]:
        """Return the texts of a list, as far as its values are texts."""
        return tuple(value for value in self.items(path) if isinstance(value, str))

    def numbers(self, path: str) -> tuple[float | int, ...]:
        """Return the numbers of a list, as far as its values are numbers."""
        return tuple(value for value in self.items(path) if isinstance(value, int | float))

    def names(self, path: str) -> Mapping[str, str]:
        """Return the texts of a mapping by name, as far as its values are texts."""
        value = self.at(path)
        texts = value.items() if isinstance(value, dict) else ()
        return {name: text for name, text in texts if isinstance(text, str)}


# As the template writes it; JSON inside of a page has no '<'.
_BEGIN = '<script type="application/json" id="report">'
_END = "</script>"


def read_report(file: Path) -> Record:
    """Return the report that a file holds, JSON or a page of ``--html``; ``-`` is standard input.

    Raises:
        UserError: it cannot be read, or holds no report.
    """
    try:
        text = read_text(file)
    except OSError as error:
        raise UserError(f"report {str(file)!r}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"report {str(file)!r}: found no UTF-8 text against JSON or a page of --html") from error
    return report_in(text, str(file))


def report_in(text: str, name: str) -> Record:
    """Return the report in a text.

    Raises:
        UserError: there is none; the message has the file's name.
    """
    held = text
    if text.lstrip().startswith("<"):
        _, begin, rest = text.partition(_BEGIN)
        held, end, _ = rest.partition(_END)
        if not (begin and end):
            raise UserError(f"report {name!r}: found a page without a report against one of --html")
    try:
        value = parsed_json(held)
    except (ValueError, RecursionError) as error:
        raise UserError(f"report {name!r}: found no JSON ({error}) against a report of --format json") from error
    if not isinstance(value, dict):
        raise UserError(f"report {name!r}: found a JSON {type(value).__name__} against a report, which is an object")
    return Record(value)
