"""Generators of workload graphs: language models, recommendation models, Linpack, Fourier transforms, Mamba [ko24]."""

from dfcompile.generators.workloads.catalogue import WORKLOADS, WorkloadGenerator, workload
from dfcompile.generators.workloads.dlrm import dlrm_training
from dfcompile.generators.workloads.fft import fft
from dfcompile.generators.workloads.hpl import hpl
from dfcompile.generators.workloads.kernels import design_text, graph_text
from dfcompile.generators.workloads.language_models import Cache, llm_decode, llm_forward, llm_training
from dfcompile.generators.workloads.mamba import mamba_scan

__all__ = [
    "WORKLOADS",
    "Cache",
    "WorkloadGenerator",
    "design_text",
    "dlrm_training",
    "fft",
    "graph_text",
    "hpl",
    "llm_decode",
    "llm_forward",
    "llm_training",
    "mamba_scan",
    "workload",
]
