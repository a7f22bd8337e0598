"""Fusion: which kernels share a configuration."""
