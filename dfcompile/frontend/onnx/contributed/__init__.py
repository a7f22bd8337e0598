"""The contributed operators that can be compiled, by the name that drafts have for them."""

from dfcompile.frontend.onnx.contributed.table import CONTRIBUTED

__all__ = ["CONTRIBUTED"]
