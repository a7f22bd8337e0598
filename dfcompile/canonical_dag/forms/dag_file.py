"""Files of canonical DAGs, in whichever form."""

from pathlib import Path

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.canonical_dag.forms.columns_form import SIGNATURE, dag_from_npz
from dfcompile.canonical_dag.forms.json_form import read_dag
from dfcompile.errors import UserError
from dfcompile.host.inputs import decoded, read_bytes


def read_dag_file(path: Path) -> CanonicalDag:
    """Read a canonical DAG, as text, JSON or a NumPy archive: its content says which.

    Raises:
        UserError: the file cannot be read, or it holds no canonical DAG; the message names the line, the record or the
            array.
    """
    try:
        data = read_bytes(path)
        text = None if data.startswith(SIGNATURE) else decoded(data)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(f"{path}: {reason}") from error
    try:
        return dag_from_npz(data) if text is None else read_dag(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
