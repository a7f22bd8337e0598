"""A step: what a batch of sequences asks of a model, kernel by kernel."""
