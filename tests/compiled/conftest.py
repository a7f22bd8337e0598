"""Models and programs written as text."""

from tests.written_models import write_model
from tests.written_programs import write_program

__all__ = ["write_model", "write_program"]
