"""The DFModel back end: a dataflow graph becomes configurations on chips, with time, cost and power [ko24]."""

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.checker import check
from dfcompile.dfmodel_backend.chip_counts import ChipCounts
from dfcompile.dfmodel_backend.configuration import Configuration
from dfcompile.dfmodel_backend.evaluator import Figures, evaluate
from dfcompile.dfmodel_backend.from_canonical import dataflow_graph
from dfcompile.dfmodel_backend.graph import (
    Connection,
    DataflowGraph,
    DataflowKernel,
    KernelType,
    Tensor,
    TensorKind,
    Use,
)
from dfcompile.dfmodel_backend.mapper import map_graph
from dfcompile.dfmodel_backend.mapping import Mapping
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap, Solver
from dfcompile.dfmodel_backend.system import System
from dfcompile.dfmodel_backend.system_file import load_system, shipped_systems

__all__ = [
    "Assumption",
    "ChipCounts",
    "Configuration",
    "Connection",
    "DataflowGraph",
    "DataflowKernel",
    "Figures",
    "KernelType",
    "Mapping",
    "MappingOptions",
    "Overlap",
    "Solver",
    "System",
    "Tensor",
    "TensorKind",
    "Use",
    "check",
    "dataflow_graph",
    "evaluate",
    "load_system",
    "map_graph",
    "shipped_systems",
]
