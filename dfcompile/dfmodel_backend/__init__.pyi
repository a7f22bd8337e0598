"""The names of the back end, each with its module: what type checkers read, and what finds a name when it is used."""

from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures as KernelFigures
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping as TaskMapping
from dfcompile.dfmodel_backend.attained.mapping import in_parts as in_parts
from dfcompile.dfmodel_backend.attained.task_model import Chosen as Chosen
from dfcompile.dfmodel_backend.attained.task_model import TaskModel as TaskModel
from dfcompile.dfmodel_backend.check.mappings import check_mapping as check_mapping
from dfcompile.dfmodel_backend.evaluate.designs import StepFigures as StepFigures
from dfcompile.dfmodel_backend.evaluate.graphs import Mapping as Mapping
from dfcompile.dfmodel_backend.fusion.fusion_solver import find_solver as find_solver
from dfcompile.dfmodel_backend.fusion.fusion_solver import fusion_solvers as fusion_solvers
from dfcompile.dfmodel_backend.machine.named_systems import named_systems as named_systems
from dfcompile.dfmodel_backend.machine.network.topologies import dimension_kinds as dimension_kinds
from dfcompile.dfmodel_backend.machine.system import Amount as Amount
from dfcompile.dfmodel_backend.machine.system import System as System
from dfcompile.dfmodel_backend.machine.system_file import load_system as load_system
from dfcompile.dfmodel_backend.machine.system_file import read_named_system as read_named_system
from dfcompile.dfmodel_backend.options import Assumption as Assumption
from dfcompile.dfmodel_backend.options import MappingOptions as MappingOptions
from dfcompile.dfmodel_backend.options import Overlap as Overlap
from dfcompile.dfmodel_backend.placement import PlacedConfiguration as PlacedConfiguration
from dfcompile.dfmodel_backend.sharding.program_shares import tensor_layouts as tensor_layouts
from dfcompile.dfmodel_backend.solve.attained_counts import AttainedCounts as AttainedCounts
from dfcompile.dfmodel_backend.solve.attained_counts import LowerShare as LowerShare
from dfcompile.dfmodel_backend.solve.chip_counts import ChipCounts as ChipCounts
from dfcompile.dfmodel_backend.solve.chip_counts import map_graph as map_graph
from dfcompile.dfmodel_backend.solve.corrections import Correction as Correction
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution as DesignSolution
from dfcompile.dfmodel_backend.workload.from_canonical import dataflow_graph as dataflow_graph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph as DataflowGraph
from dfcompile.dfmodel_backend.workload.graph import Exchange as Exchange
from dfcompile.dfmodel_backend.workload.graph import Tensor as Tensor
from dfcompile.dfmodel_backend.workload.graph import TensorKind as TensorKind
from dfcompile.dfmodel_backend.workload.graph import Use as Use

_PLACES: dict[str, str]
__all__: list[str]
