"""The DFModel back end: a dataflow graph becomes configurations on chips, with time, cost and power [ko24]."""

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.attained.breakdown import TimeParts
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping, map_tasks
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration, TaskModel
from dfcompile.dfmodel_backend.check.mappings import check
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
from dfcompile.dfmodel_backend.evaluate.graphs import Configuration, Figures, evaluate
from dfcompile.dfmodel_backend.evaluate.mapping import Mapping
from dfcompile.dfmodel_backend.fusion.registry import find_solver, fusion_solvers
from dfcompile.dfmodel_backend.machine.named_systems import named_systems
from dfcompile.dfmodel_backend.machine.system import Amount, System
from dfcompile.dfmodel_backend.machine.system_file import load_system, read_named_system
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap
from dfcompile.dfmodel_backend.plugin_faults import plugin_faults
from dfcompile.dfmodel_backend.solve.attained_counts import AttainedCounts, LowerShare
from dfcompile.dfmodel_backend.solve.chip_counts import ChipCounts
from dfcompile.dfmodel_backend.solve.mapper import map_graph
from dfcompile.dfmodel_backend.workload.exchange import Exchange, ExchangeKind
from dfcompile.dfmodel_backend.workload.from_canonical import dataflow_graph
from dfcompile.dfmodel_backend.workload.graph import (
    Connection,
    DataflowGraph,
    Tensor,
    TensorKind,
    Use,
)

__all__ = [
    "Amount",
    "Assumption",
    "AttainedCounts",
    "ChipCounts",
    "Configuration",
    "Connection",
    "DataflowGraph",
    "Exchange",
    "ExchangeKind",
    "Figures",
    "LeastCosts",
    "LowerShare",
    "Mapping",
    "MappingOptions",
    "Overlap",
    "System",
    "TaskConfiguration",
    "TaskMapping",
    "TaskModel",
    "Tensor",
    "TensorKind",
    "TimeParts",
    "Use",
    "check",
    "check_task_mapping",
    "dataflow_graph",
    "evaluate",
    "find_solver",
    "fusion_solvers",
    "load_system",
    "map_graph",
    "map_tasks",
    "named_systems",
    "plugin_faults",
    "read_named_system",
]
