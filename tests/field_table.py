"""The fields of a record as a table for documents, made from what is said of them."""

from dfcompile.report.figure import RecordField, fields_of


def field_table(record: type) -> str:
    """Return a table in Markdown: name, unit and meaning of each field; a list is marked by ``[]``."""
    lines = ["| field | unit | meaning |", "|---|---|---|", *map(_line, fields_of(record))]
    return "".join(f"{line}\n" for line in lines)


def records_in(report: type) -> dict[str, type]:
    """Return a report and the records that it holds, by the path that leads to each, such as ``results[].schedule``."""
    found: dict[str, type] = {"": report}
    for field in fields_of(report):
        if field.record is not None:
            name = _name(field)
            for path, record in records_in(field.record).items():
                found[f"{name}.{path}" if path else name] = record
    return found


def _name(field: RecordField) -> str:
    return f"{field.name}[]" if field.is_list else field.name


def _line(field: RecordField) -> str:
    figure = field.figure
    meaning = figure.meaning.replace("|", r"\|")
    unit = f" {figure.unit} " if figure.unit else " "
    return f"| `{_name(field)}` |{unit}| {meaning} |"
