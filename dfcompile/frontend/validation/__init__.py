"""Validation: whether a model fits together, beyond what ONNX's own checker sees."""
