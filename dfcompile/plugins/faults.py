"""Whose fault it is: what a plug-in raises is an error that names the plug-in, never a bug of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from dfcompile.errors import PluginError, UserError, VerificationError

OWN_PACKAGE = "dfcompile"


class ImportFault(Struct, frozen=True, eq=False):
    """A module behind an entry point that cannot be imported.

    Attributes:
        entry_point: group and name, such as ``dfcompile.expansions:mylab``.
        module: that was being imported, or what the entry point names if that is no module.
        error: that stopped it, with the plug-in's own traceback.
    """

    entry_point: str
    module: str
    error: BaseException

    def __str__(self) -> str:
        return f"entry point {self.entry_point}: cannot import {self.module!r}: {described(self.error)}"


def is_own(origin: str) -> bool:
    """Return whether a module, or something in it, is dfcompile's own.

    >>> is_own("dfcompile.lowering.expansions.matmul"), is_own("dfcompile_extras.matmul")
    (True, False)
    """
    return origin.partition(".")[0] == OWN_PACKAGE


@contextmanager
def faults_of(kind: str, origin: str) -> Iterator[None]:
    """Turn what a plug-in's code raises in the body into a `PluginError` that names it.

    An error that is meant for the user (``UserError``) stays as it is, and so does everything that our own code raises:
    that is a bug of ours.

    Args:
        kind: such as ``expansion``.
        origin: module and name of what is called, such as ``mylab.matmul_rows.rows``.

    Raises:
        PluginError: ``in expansion mylab.matmul_rows.rows: ZeroDivisionError: division by zero``.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # whatever it is, it is the plug-in's
        if is_own(origin):
            raise
        raise PluginError(f"in {kind} {origin}: {described(error)}") from error


@contextmanager
def faults_of_pass(name: str, origin: str) -> Iterator[None]:
    """Name a pass in every error that is raised in the body; see `faults_of`.

    Args:
        name: of the pass, as the user wrote it.
        origin: module and name of its function.

    Raises:
        UserError: of the pass, with ``in pass 'name'`` put before it.
        PluginError: the pass of a third party raised anything else.
        VerificationError: what a pass of ours gave is wrong.
    """
    with faults_of("pass", origin):
        try:
            yield
        except UserError as error:
            raise type(error)(f"in pass {name!r}: {error}") from error
        except VerificationError as error:
            raise VerificationError(f"in pass {name!r}: {error}" if is_own(origin) else str(error)) from error


def name_of(function: object) -> str:
    """Return the name of a function; of any other callable object the name of its class."""
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def described(error: BaseException) -> str:
    """Return type and text of an error in one line; of one of our own the text, which says it all.

    >>> described(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    text = " ".join(str(error).split())
    if is_own(type(error).__module__):
        return text
    name = type(error).__name__
    return f"{name}: {text}" if text else name
