"""Writes files and folders so that nothing half-written is ever seen under the name that the user gave."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dfcompile.errors import UserError
from dfcompile.host.inputs import was_read
from dfcompile.host.printable import reason_of

MARKER = ".dfcompile-emit"  # in every folder that we wrote, so that we may replace it
OVERWRITES_INPUT = "output {!r}: found a file that this run reads against another file"
PLAIN_WIDTH = 120  # columns where the output is not a terminal, so that it is always the same


def output_width() -> int:
    """Return how many columns a table on standard output may have."""
    columns = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else PLAIN_WIDTH
    return columns or PLAIN_WIDTH  # some terminals do not know theirs


def check_target(target: Path | None) -> None:
    """Check that a file can be written, before anything is computed.

    Raises:
        UserError: it is a folder, or its folder is missing or not writable.
    """
    if target is None:
        return
    if target.is_dir():
        raise UserError(f"output {str(target)!r}: found a folder against a file name")
    if not target.exists() or target.is_file():
        _check_parent(target.resolve())


def check_overwritten(targets: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Check that no file or folder that will be written is, or holds, one that will be read.

    Raises:
        UserError: one does, by whatever path or link.
    """
    for target in targets:
        for source in inputs:
            if not target.exists() or not source.exists():
                continue
            is_replaced = (target / MARKER).is_file() and source.resolve().is_relative_to(target.resolve())
            if is_replaced or (target.is_file() and target.samefile(source)):
                raise UserError(OVERWRITES_INPUT.format(str(target)))


def check_targets(targets: Sequence[Path | None]) -> None:
    """Check that several files can be written, and that they are different ones.

    Raises:
        UserError: they cannot, or two of them are one file.
    """
    named = [target for target in targets if target is not None]
    for position, target in enumerate(named):
        check_target(target)
        if target.resolve() in [earlier.resolve() for earlier in named[:position]]:
            raise UserError(f"output {str(target)!r}: given for two things against one")


def check_folder(folder: Path) -> None:
    """Check that a folder is new, empty or an earlier one of ours, before anything is computed.

    Raises:
        UserError: it is something else, or the folder around it is missing or not writable.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"output {str(folder)!r}: found a file against a folder name")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise UserError(f"output {str(folder)!r}: found other files in it against a new or empty folder")
    _check_parent(folder)


def check_folders(folders: Sequence[Path]) -> None:
    """Check that folders of ``--emit`` can be written, and that they are different ones; see `check_folder`."""
    for folder in folders:
        check_folder(folder)
    named = [folder.absolute() for folder in folders]
    for position, folder in enumerate(folders):
        if named[position] in named[:position]:
            raise UserError(f"--emit: folder {str(folder)!r} is given twice")


def write_text(text: str | bytes, target: Path | None) -> None:
    """Write a text, or bytes, to a file, whole or not at all, or to standard output if there is no file.

    What is no regular file, such as a pipe or ``/dev/null``, is written to and not replaced.

    Raises:
        UserError: the file cannot be written, or was read by this run.
    """
    content = text.encode() if isinstance(text, str) else text
    if target is None:
        _write_stdout(text)
        return
    try:
        target = target.resolve()  # the file behind a link, not the link
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        if was_read(target):
            raise UserError(OVERWRITES_INPUT.format(str(target)))
        with replacing(target, _usual_mode(0o666)) as file:
            file.write(content)
    except OSError as error:
        raise UserError(f"output {str(target)!r}: {error.strerror}") from error
    except RuntimeError as error:  # links that lead to each other
        raise UserError(f"output {str(target)!r}: a circle of links against a file") from error


@contextmanager
def replacing(target: Path, mode: int) -> Iterator[BinaryIO]:
    """Give a new file that takes the place of another one behind the body, unless the body raises.

    Args:
        target: the other one, or none yet.
        mode: who may read and write it.
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        draft.chmod(mode)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _write_stdout(text: str | bytes) -> None:
    try:
        if isinstance(text, bytes):
            sys.stdout.buffer.write(text)
        else:
            sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # whoever reads has enough
    except OSError as error:
        raise UserError(f"standard output: {reason_of(error)}") from error


def write_folder(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write named texts or bytes to a folder, all or none; an earlier one of ours is replaced.

    Names may have sub-folders.

    Raises:
        UserError: the folder cannot be written, or this run has read a file in it.
    """
    check_folder(folder)
    if was_read(folder):
        raise UserError(OVERWRITES_INPUT.format(str(folder)))
    try:
        draft = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name}."))
        try:
            draft.chmod(_usual_mode(0o777))
            for name, content in {MARKER: "", **files}.items():
                file = draft / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.encode() if isinstance(content, str) else content)
            if folder.is_dir():
                aside = Path(tempfile.mkdtemp(dir=draft.parent, prefix=f".{folder.name}."))
                folder.replace(aside)
                draft.replace(folder)
                shutil.rmtree(aside)
            else:
                draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise UserError(f"output {str(folder)!r}: {error.strerror}") from error


def _check_parent(target: Path) -> None:
    parent = target.absolute().parent
    if not parent.is_dir():
        raise UserError(f"output {str(target)!r}: no folder {str(parent)!r}")
    if not os.access(parent, os.W_OK):
        raise UserError(f"output {str(target)!r}: folder {str(parent)!r} is not writable")


def _usual_mode(mode: int) -> int:
    """Return what an ordinary open() or mkdir() gives of a mode: tempfile makes private files."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask
