"""Extraction: from the map scopes of a lowered SDFG to the tasks of a canonical DAG."""

from dfcompile.canonical_dag.extraction.extract import DEFAULT_OPTIONS, ExtractionOptions, extract
from dfcompile.canonical_dag.extraction.granularity import DECLARED, Granularity, parse_granularity

__all__ = ["DECLARED", "DEFAULT_OPTIONS", "ExtractionOptions", "Granularity", "extract", "parse_granularity"]
