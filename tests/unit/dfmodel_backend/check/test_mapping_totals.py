"""The checker adds a mapping up: no total of it may be other than its configurations say."""

from typing import Any

import pytest

from dfcompile.dfmodel_backend import Mapping, check_mapping, map_graph
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.graphs import chain, figure_of, machine, with_figure

SYSTEM = machine(gb_per_s=2.0)
TOTALS = {
    "time_s": "time",
    "dram_bytes": "dram bytes",
    "flop": "flop",
    "cost_usd": "cost",
    "power_w": "power",
    "energy_j": "energy",
    "utilization": "utilization",
    "gap": "gap",
}


@pytest.fixture(scope="module")
def mapping() -> Mapping:
    return map_graph(chain(), SYSTEM)


@pytest.mark.parametrize("factor", [0.999, 1.001])
@pytest.mark.parametrize("field", TOTALS)
def test_every_total_is_added_up_again(mapping: Mapping, field: str, factor: float) -> None:
    check_mapping(chain(), SYSTEM, mapping)
    changed: dict[str, Any] = {field: (figure_of(mapping, field) or 1.0) * factor}  # the gap of an optimum is 0

    with pytest.raises(VerificationError, match=f"^{TOTALS[field]}: found"):
        check_mapping(chain(), SYSTEM, with_figure(mapping, **changed))


def test_a_bound_above_the_time_is_none(mapping: Mapping) -> None:
    """The gap that follows from it is the one stated."""
    above = replace(mapping, bound_time_s=mapping.figures.time_s * 1.01, gap=1 / 1.01 - 1)

    with pytest.raises(VerificationError, match=r"^bound: found .* against a time of"):
        check_mapping(chain(), SYSTEM, above)


def test_a_bound_below_the_time_makes_a_gap(mapping: Mapping) -> None:
    check_mapping(
        chain(), SYSTEM, replace(mapping, bound_time_s=mapping.figures.time_s * 0.75, gap=1 / 3, optimal=False)
    )
