"""Report formats, one per file."""
