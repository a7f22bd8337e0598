"""Models written as text."""

from tests.written_models import write_model

__all__ = ["write_model"]
