"""What runs: kernels and tensors, of a model or of a design."""
