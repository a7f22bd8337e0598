"""The DFModel back end: a dataflow graph becomes configurations on chips, with time, cost and power [ko24]."""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dfcompile.dfmodel_backend.assumption import Assumption as Assumption
    from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures as KernelFigures
    from dfcompile.dfmodel_backend.attained.mapping import TaskMapping as TaskMapping
    from dfcompile.dfmodel_backend.attained.task_model import TaskModel as TaskModel
    from dfcompile.dfmodel_backend.check.mappings import check_mapping as check_mapping
    from dfcompile.dfmodel_backend.evaluate.designs import StepFigures as StepFigures
    from dfcompile.dfmodel_backend.evaluate.graphs import Mapping as Mapping
    from dfcompile.dfmodel_backend.fusion.registry import find_solver as find_solver
    from dfcompile.dfmodel_backend.fusion.registry import fusion_solvers as fusion_solvers
    from dfcompile.dfmodel_backend.import_faults import plugin_faults as plugin_faults
    from dfcompile.dfmodel_backend.machine.asked_system import load_system as load_system
    from dfcompile.dfmodel_backend.machine.named_systems import named_systems as named_systems
    from dfcompile.dfmodel_backend.machine.system import Amount as Amount
    from dfcompile.dfmodel_backend.machine.system import System as System
    from dfcompile.dfmodel_backend.machine.system_file import read_named_system as read_named_system
    from dfcompile.dfmodel_backend.options import MappingOptions as MappingOptions
    from dfcompile.dfmodel_backend.options import Overlap as Overlap
    from dfcompile.dfmodel_backend.placement.placement import PlacedConfiguration as PlacedConfiguration
    from dfcompile.dfmodel_backend.sharding.program_shares import tensor_layouts as tensor_layouts
    from dfcompile.dfmodel_backend.solve.attained_counts import AttainedCounts as AttainedCounts
    from dfcompile.dfmodel_backend.solve.attained_counts import LowerShare as LowerShare
    from dfcompile.dfmodel_backend.solve.chip_counts import ChipCounts as ChipCounts
    from dfcompile.dfmodel_backend.solve.corrections import Correction as Correction
    from dfcompile.dfmodel_backend.solve.design_search import DesignSolution as DesignSolution
    from dfcompile.dfmodel_backend.solve.mapper import map_graph as map_graph
    from dfcompile.dfmodel_backend.workload.exchange import Exchange as Exchange
    from dfcompile.dfmodel_backend.workload.from_canonical import dataflow_graph as dataflow_graph
    from dfcompile.dfmodel_backend.workload.graph import DataflowGraph as DataflowGraph
    from dfcompile.dfmodel_backend.workload.graph import Tensor as Tensor
    from dfcompile.dfmodel_backend.workload.graph import TensorKind as TensorKind
    from dfcompile.dfmodel_backend.workload.graph import Use as Use

# Names by module, which is imported when one is first used: who reads a system file needs no solver.
_NAMES: Final = {
    "assumption": ("Assumption",),
    "attained.kernel_figures": ("KernelFigures",),
    "attained.mapping": ("TaskMapping",),
    "attained.task_model": ("TaskModel",),
    "check.mappings": ("check_mapping",),
    "evaluate.designs": ("StepFigures",),
    "evaluate.graphs": ("Mapping",),
    "fusion.registry": ("find_solver", "fusion_solvers"),
    "import_faults": ("plugin_faults",),
    "machine.asked_system": ("load_system",),
    "machine.named_systems": ("named_systems",),
    "machine.system": ("Amount", "System"),
    "machine.system_file": ("read_named_system",),
    "options": ("MappingOptions", "Overlap"),
    "placement.placement": ("PlacedConfiguration",),
    "sharding.program_shares": ("tensor_layouts",),
    "solve.attained_counts": ("AttainedCounts", "LowerShare"),
    "solve.chip_counts": ("ChipCounts",),
    "solve.corrections": ("Correction",),
    "solve.design_search": ("DesignSolution",),
    "solve.mapper": ("map_graph",),
    "workload.exchange": ("Exchange",),
    "workload.from_canonical": ("dataflow_graph",),
    "workload.graph": ("DataflowGraph", "Tensor", "TensorKind", "Use"),
}
__all__ = [name for names in _NAMES.values() for name in names]
_PLACES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found  # found at once from now on
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
