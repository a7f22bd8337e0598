"""Sets of kernels: which may share a configuration by their order alone, whatever it costs."""
