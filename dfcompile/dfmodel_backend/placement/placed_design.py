"""The placement of all configurations of a solved design."""

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures
from dfcompile.dfmodel_backend.intra_chip.memory_units.needs import labels_of
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.memory_unit_grid import Placement
from dfcompile.dfmodel_backend.placement.placement import PlacedUnits, UnitGraph, place_units
from dfcompile.dfmodel_backend.placement.router_links import RouterLink, router_links
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.dfmodel_backend.workload.topological_order import topological_numbers


class PlacedConfiguration(Struct, frozen=True):
    """One configuration on the grid."""

    configuration: int
    units: PlacedUnits
    links: tuple[RouterLink, ...]


def place_design(
    design: Design, decision: Decision, figures: DesignFigures, compatibility: Compatibility = RIGHT
) -> tuple[PlacedConfiguration, ...]:
    """Place the units of each configuration that has kernels; nothing if the design has no grid.

    Raises:
        UserError: the grid has fewer cells than units.
    """
    grid = design.machine.pmu
    if grid is None or grid.placement is Placement.NONE:
        return ()
    model = DesignModel(design, decision.sharding, decision.tiles, compatibility)
    ends = tuple((edge.source, edge.target) for edge in model.edges)
    levels = topological_numbers(len(design.kernels), list(ends))
    order = tuple(sorted(range(len(levels)), key=lambda kernel: (levels[kernel], kernel)))
    graph = UnitGraph(order, ends, labels_of(design))
    found = []
    for number, step in enumerate(figures.steps):
        if step.units is not None:
            placed = place_units(grid, graph, step.units)
            found.append(PlacedConfiguration(number, placed, router_links(model, decision, placed)))
    return tuple(found)
