"""Checks for systems: a file is read, its figures are plausible and have sources, and graphs can be mapped on it."""

from pathlib import Path
from random import Random

from dfcompile.dfmodel_backend import ChipCounts, System, load_system, named_systems, read_named_system
from dfcompile.errors import InfeasibleError
from dfcompile.testing.random_graphs import random_graph

GRAPHS = 5
KERNELS = 5
MOST_CHIPS = 4


def check_system(name: str | Path) -> System:
    """Check a system file and return the system.

    * It is read without an error, and no figure is beyond what machines have.
    * Each figure of the accelerator and of the DRAM says where it comes from.
    * Small graphs can be mapped on it, on one core and on all, and on several chips if it has a network; the
      independent checker accepts every mapping.

    Args:
        name: that ``--system`` would be given: of a system of an installed package, or a path.

    Raises:
        AssertionError: saying what was found against what.
        UserError: the file is broken, or there is none.
    """
    known = named_systems().by_name
    system = read_named_system(known[name]) if isinstance(name, str) and name in known else load_system(name)
    assert not system.warnings, f"{name}: found {system.warnings[0]}"
    for figure in system.sources:
        where = f"{name}: {figure.name}"
        assert figure.source != f"system {system.name}", f"{where}: found no source against one in 'sources'"
    random = Random(0)  # noqa: S311  # graphs, no secrets
    mapped, dimensions = 0, system.network.dimensions
    # A number of chips that the network has a part of.
    chips = max(count for count in range(1, MOST_CHIPS + 1) if system.parts(count)) if dimensions else 1
    for _ in range(GRAPHS):
        graph = random_graph(random, KERNELS)
        for cores in {1: None, system.accelerator.cores: None}:
            mapped += _is_mapped(ChipCounts(graph, system.with_cores(cores)), 1)
        if chips > 1:
            mapped += _is_mapped(ChipCounts(graph, system), chips)
    assert mapped, f"{name}: found no small graph that fits it"
    return system


def _is_mapped(counts: ChipCounts, chips: int) -> bool:
    try:
        counts.fastest(chips)
    except InfeasibleError:
        return False
    return True
