"""PyTorch models: the user's Python file, run and exported."""
