"""Points of an exploration in a columnar file that pandas opens: SQLite or Parquet."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.host.outputs import write_text
from dfcompile.host.private_folder import private_folder

SQLITE_ENDINGS = (".sqlite", ".db")
PARQUET_ENDING = ".parquet"


def check_saved(target: Path | None) -> None:
    """Check the ending of the file, and that what writes it is installed.

    Raises:
        UserError: it is neither, or not.
    """
    if target is None or target.suffix in SQLITE_ENDINGS:
        return
    if target.suffix != PARQUET_ENDING:
        raise UserError(f"--save {str(target)!r}: found {target.suffix!r} against .sqlite or .parquet")
    try:
        import pyarrow as pa  # noqa: F401  # optional
    except ImportError as error:
        raise UserError(
            "--save: 'pyarrow' is not installed (pip install 'dfcompile[parquet]', or save .sqlite)"
        ) from error


def save_rows(rows: Sequence[Mapping[str, object]], target: Path) -> None:
    """Write rows, all with the same names, to a file: of SQLite as its table ``front``.

    Raises:
        UserError: the file cannot be written.
    """
    with private_folder() as folder:
        draft = folder / f"front{target.suffix}"
        if target.suffix == PARQUET_ENDING:
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows]), draft)
        else:
            _write_sqlite(rows, draft)
        write_text(draft.read_bytes(), target)


def _write_sqlite(rows: Sequence[Mapping[str, object]], target: Path) -> None:
    names = list(rows[0])
    kinds = {bool: "INTEGER", int: "INTEGER", float: "REAL", str: "TEXT"}
    declared = ", ".join(f'"{name}" {kinds[type(rows[0][name])]}' for name in names)
    import sqlite3  # which no other command needs

    with closing(sqlite3.connect(target)) as database, database:
        database.execute(f"CREATE TABLE front ({declared})")
        database.executemany(
            f"INSERT INTO front VALUES ({', '.join('?' * len(names))})",  # noqa: S608  # marks alone
            [tuple(row[name] for name in names) for row in rows],
        )
