"""Generators of workload graphs: language models, recommendation models, Linpack, Fourier transforms, Mamba [ko24]."""

from dfcompile.dfmodel_backend.generators.dlrm import dlrm_training
from dfcompile.dfmodel_backend.generators.fft import fft
from dfcompile.dfmodel_backend.generators.hpl import hpl
from dfcompile.dfmodel_backend.generators.llm_decode import Cache, llm_decode
from dfcompile.dfmodel_backend.generators.llm_forward import llm_forward
from dfcompile.dfmodel_backend.generators.llm_training import llm_training
from dfcompile.dfmodel_backend.generators.mamba import mamba_scan
from dfcompile.dfmodel_backend.generators.text_form import design_text, graph_message, graph_text
from dfcompile.dfmodel_backend.generators.workload_graph import (
    Communication,
    Direction,
    WorkloadConnection,
    WorkloadGraph,
    WorkloadKernel,
)
from dfcompile.dfmodel_backend.generators.workloads import WORKLOADS, Argument, Parameter, WorkloadGenerator, workload

__all__ = [
    "WORKLOADS",
    "Argument",
    "Cache",
    "Communication",
    "Direction",
    "Parameter",
    "WorkloadConnection",
    "WorkloadGenerator",
    "WorkloadGraph",
    "WorkloadKernel",
    "design_text",
    "dlrm_training",
    "fft",
    "graph_message",
    "graph_text",
    "hpl",
    "llm_decode",
    "llm_forward",
    "llm_training",
    "mamba_scan",
    "workload",
]
