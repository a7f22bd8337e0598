"""The DFModel back end: a dataflow graph becomes configurations on chips, with time, cost and power [ko24]."""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dfcompile.dfmodel_backend.assumption import Assumption
    from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
    from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
    from dfcompile.dfmodel_backend.attained.mapping import TaskMapping, TimeParts, map_tasks
    from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration, TaskModel
    from dfcompile.dfmodel_backend.check.mappings import check_mapping
    from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
    from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, StepFigures
    from dfcompile.dfmodel_backend.evaluate.graphs import Configuration, Figures, Mapping, evaluate_mapping
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

# Names by module, which is imported when one is first used: who reads a system file needs no solver.
_NAMES: Final = {
    "assumption": ("Assumption",),
    "attained.kernel_figures": ("KernelFigures",),
    "attained.least_costs": ("LeastCosts",),
    "attained.mapping": ("TaskMapping", "TimeParts", "map_tasks"),
    "attained.task_model": ("TaskConfiguration", "TaskModel"),
    "check.mappings": ("check_mapping",),
    "check.task_mappings": ("check_task_mapping",),
    "evaluate.designs": ("Decision", "DesignFigures", "StepFigures"),
    "evaluate.graphs": ("Configuration", "Figures", "Mapping", "evaluate_mapping"),
    "fusion.registry": ("find_solver", "fusion_solvers"),
    "import_faults": ("plugin_faults",),
    "machine.asked_system": ("load_system",),
    "machine.named_systems": ("named_systems",),
    "machine.roofs": ("Roofs",),
    "machine.system": ("Amount", "System"),
    "machine.system_file": ("read_named_system",),
    "options": ("MappingOptions", "Overlap"),
    "placement.placed_design": ("PlacedConfiguration",),
    "sharding.tensor_layouts": ("TensorLayout", "tensor_layouts"),
    "solve.attained_counts": ("AttainedCounts", "LowerShare"),
    "solve.chip_counts": ("ChipCounts",),
    "solve.corrections": ("Correction",),
    "solve.design_search": ("DesignSolution",),
    "solve.mapper": ("map_graph",),
    "workload.exchange": ("Exchange", "ExchangeKind"),
    "workload.from_canonical": ("dataflow_graph",),
    "workload.graph": ("Connection", "DataflowGraph", "Tensor", "TensorKind", "Use"),
}
_PLACES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found  # found at once from now on
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
