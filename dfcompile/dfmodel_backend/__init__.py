"""The DFModel back end: a dataflow graph becomes configurations on chips, with time, cost and power [ko24]."""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dfcompile.dfmodel_backend.assumption import Assumption
    from dfcompile.dfmodel_backend.attained.breakdown import TimeParts
    from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
    from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
    from dfcompile.dfmodel_backend.attained.mapping import TaskMapping, map_tasks
    from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration, TaskModel
    from dfcompile.dfmodel_backend.check.mappings import check_mapping
    from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
    from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, StepFigures
    from dfcompile.dfmodel_backend.evaluate.graphs import Configuration, Figures, evaluate_mapping
    from dfcompile.dfmodel_backend.evaluate.mapping import Mapping
    from dfcompile.dfmodel_backend.fusion.registry import find_solver, fusion_solvers
    from dfcompile.dfmodel_backend.import_faults import plugin_faults
    from dfcompile.dfmodel_backend.machine.asked_system import load_system
    from dfcompile.dfmodel_backend.machine.named_systems import named_systems
    from dfcompile.dfmodel_backend.machine.roofs import Roofs
    from dfcompile.dfmodel_backend.machine.system import Amount, System
    from dfcompile.dfmodel_backend.machine.system_file import read_named_system
    from dfcompile.dfmodel_backend.options import MappingOptions, Overlap
    from dfcompile.dfmodel_backend.placement.placed_design import PlacedConfiguration
    from dfcompile.dfmodel_backend.sharding.tensor_layouts import TensorLayout, tensor_layouts
    from dfcompile.dfmodel_backend.solve.attained_counts import AttainedCounts, LowerShare
    from dfcompile.dfmodel_backend.solve.chip_counts import ChipCounts
    from dfcompile.dfmodel_backend.solve.corrections import Correction
    from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
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
    "Correction",
    "DataflowGraph",
    "Decision",
    "DesignFigures",
    "DesignSolution",
    "Exchange",
    "ExchangeKind",
    "Figures",
    "KernelFigures",
    "LeastCosts",
    "LowerShare",
    "Mapping",
    "MappingOptions",
    "Overlap",
    "PlacedConfiguration",
    "Roofs",
    "StepFigures",
    "System",
    "TaskConfiguration",
    "TaskMapping",
    "TaskModel",
    "Tensor",
    "TensorKind",
    "TensorLayout",
    "TimeParts",
    "Use",
    "check_mapping",
    "check_task_mapping",
    "dataflow_graph",
    "evaluate_mapping",
    "find_solver",
    "fusion_solvers",
    "load_system",
    "map_graph",
    "map_tasks",
    "named_systems",
    "plugin_faults",
    "read_named_system",
    "tensor_layouts",
]

# The module of each name, which is imported when the name is first used: who reads a system file needs no solver.
_PLACES: Final = {
    "Amount": "machine.system",
    "Assumption": "assumption",
    "AttainedCounts": "solve.attained_counts",
    "ChipCounts": "solve.chip_counts",
    "Configuration": "evaluate.graphs",
    "Connection": "workload.graph",
    "Correction": "solve.corrections",
    "DataflowGraph": "workload.graph",
    "Decision": "evaluate.designs",
    "DesignFigures": "evaluate.designs",
    "DesignSolution": "solve.design_search",
    "Exchange": "workload.exchange",
    "ExchangeKind": "workload.exchange",
    "Figures": "evaluate.graphs",
    "KernelFigures": "attained.kernel_figures",
    "LeastCosts": "attained.least_costs",
    "LowerShare": "solve.attained_counts",
    "Mapping": "evaluate.mapping",
    "MappingOptions": "options",
    "Overlap": "options",
    "PlacedConfiguration": "placement.placed_design",
    "Roofs": "machine.roofs",
    "StepFigures": "evaluate.designs",
    "System": "machine.system",
    "TaskConfiguration": "attained.task_model",
    "TaskMapping": "attained.mapping",
    "TaskModel": "attained.task_model",
    "Tensor": "workload.graph",
    "TensorKind": "workload.graph",
    "TensorLayout": "sharding.tensor_layouts",
    "TimeParts": "attained.breakdown",
    "Use": "workload.graph",
    "check_mapping": "check.mappings",
    "check_task_mapping": "check.task_mappings",
    "dataflow_graph": "workload.from_canonical",
    "evaluate_mapping": "evaluate.graphs",
    "find_solver": "fusion.registry",
    "fusion_solvers": "fusion.registry",
    "load_system": "machine.asked_system",
    "map_graph": "solve.mapper",
    "map_tasks": "attained.mapping",
    "named_systems": "machine.named_systems",
    "plugin_faults": "import_faults",
    "read_named_system": "machine.system_file",
    "tensor_layouts": "sharding.tensor_layouts",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found  # found at once from now on
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
