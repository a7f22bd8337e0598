"""The pure evaluators: an assignment gives every figure."""
