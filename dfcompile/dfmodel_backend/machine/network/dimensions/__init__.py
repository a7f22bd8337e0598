"""Kinds of dimensions of networks, one module each."""
