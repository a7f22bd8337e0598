"""Kinds of model files, one module each."""
