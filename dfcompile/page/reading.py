"""The report of a file: JSON as it is, or a page with it inside."""

from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.host.inputs import parsed_json, read_text
from dfcompile.host.reasons import reason_of
from dfcompile.page.records import Record

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
