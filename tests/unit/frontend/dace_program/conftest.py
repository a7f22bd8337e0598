"""Files with a ``@dace.program``, written as text."""

from tests.written_programs import write_program

__all__ = ["write_program"]
