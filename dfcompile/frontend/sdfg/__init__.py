"""The SDFG of a model: operator nodes, arrays, and how they are made quickly."""
