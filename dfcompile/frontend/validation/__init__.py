"""Validation: whether a model fits together, beyond what ONNX's own checker sees."""

from dfcompile.frontend.validation.structure import check_structure
from dfcompile.frontend.validation.typed_values import check_operands, checked_types

__all__ = ["check_operands", "check_structure", "checked_types"]
