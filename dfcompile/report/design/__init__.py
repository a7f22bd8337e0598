"""The report on a solved design."""
