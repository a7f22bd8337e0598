"""Fusion within the stages of a pipeline."""
