"""Which flaws of DFModel's network model a figure repeats; the default repeats none [ko24]."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class NetworkCompat:
    """Switches, each the opposite of a correction in `CORRECTIONS`, and factors that older code fixed.

    A factor of 0 follows the design's own choice (``separate_rs_ag_for_ar``: 2 if set, else 1).
    """

    all_reduce_factor: int = 0
    periodic_factor: int = 0
    periodic_factor_ignored_when_fully_connected: bool = False
    domain_ignores_factor_and_kind: bool = False
    lone_chip_communicates: bool = False
    periodic_bandwidth_forgotten: bool = False
    torus_bisection_of_other_dimension: bool = False
    torus_bisection_halved: bool = False
    fully_connected_bisection_of_all_links: bool = False
    messages_of_all_pairs: bool = False
    outermost_bandwidth_quartered: bool = False
    fourth_dimension_free: bool = False
    innermost_links_of_all_copies: bool = False


CORRECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "periodic_factor_ignored_when_fully_connected": (
            "gradient all-reduces on fully connected dimensions count reduce-scatter and all-gather apart, as on others"
        ),
        "domain_ignores_factor_and_kind": (
            "all-reduces that start in a high-bandwidth domain obey the shape of each dimension and the factor of two "
            "phases"
        ),
        "lone_chip_communicates": "a group of one chip exchanges nothing, also where links are not those of a ring",
        "periodic_bandwidth_forgotten": (
            "gradient all-reduces of recommendation models take the bandwidth of the links, not 1 GB/s"
        ),
        "torus_bisection_of_other_dimension": (
            "a cut through one dimension of a torus crosses the rings of that dimension, not those of another"
        ),
        "torus_bisection_halved": "a cut through a ring crosses two links",
        "fully_connected_bisection_of_all_links": (
            "a cut through a fully connected group crosses a quarter of the square of its chips, not every link"
        ),
        "messages_of_all_pairs": "of an all-to-all only messages from one half to the other cross the cut",
        "outermost_bandwidth_quartered": "a switch offers every port to an all-to-all, not a quarter of them",
        "fourth_dimension_free": "links and switches of the fourth dimension cost money and power",
        "innermost_links_of_all_copies": "links of the innermost dimension are paid once per copy of the workload",
    }
)

RIGHT = NetworkCompat()

# What the newest code does; `dataclasses.replace` sets the habits of older code on top.
ORIGINAL = NetworkCompat(
    periodic_factor_ignored_when_fully_connected=True,
    domain_ignores_factor_and_kind=True,
    lone_chip_communicates=True,
    periodic_bandwidth_forgotten=True,
    torus_bisection_of_other_dimension=True,
    fourth_dimension_free=True,
    innermost_links_of_all_copies=True,
)
