"""Files of canonical DAGs, in either form."""

from pathlib import Path

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.forms.json_form import read_dag
from dfcompile.errors import UserError
from dfcompile.host.inputs import read_text


def read_dag_file(path: Path) -> CanonicalDag:
    """Read a canonical DAG, as text or JSON: its content says which.

    Raises:
        UserError: the file cannot be read, or it holds no canonical DAG; the message names the line or the record.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(f"{path}: {reason}") from error
    try:
        return read_dag(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
