"""Language models from their configuration: kernels, machines, times and degrees, without weights and without torch."""
