"""One lowering pass per file."""
