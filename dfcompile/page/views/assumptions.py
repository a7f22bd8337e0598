"""Assumptions of a report, however it lists them."""

from dfcompile.page.records import Record


def assumptions_of(report: Record, path: str = "assumptions") -> tuple[tuple[str, str, str], ...]:
    """Return name, value and source of each; of one that is a sentence, all is its value."""
    found = []
    for each in report.items(path):
        if isinstance(each, dict):
            one = Record(each)
            found.append((one.text("name"), one.text("value"), one.text("source")))
        elif isinstance(each, str):
            found.append(("", each, ""))
    return tuple(found)
