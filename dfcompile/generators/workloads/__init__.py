"""Generators of workload graphs: language models, recommendation models, Linpack, Fourier transforms, Mamba [ko24]."""
