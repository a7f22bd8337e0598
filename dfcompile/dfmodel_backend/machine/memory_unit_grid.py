"""Memory units (PMUs) of a chip beside its compute units (PCUs, its cores), and the grid that both lie on [ko24]."""

from enum import StrEnum, unique

from msgspec import Struct


@unique
class LaneStage(StrEnum):
    """How the kernel that reads a tensor spreads it over its cores."""

    LANE = "lane"  # rows: each of its lanes reads from a PMU of its own
    STAGE = "stage"  # columns: each of its stages does


@unique
class Placement(StrEnum):
    """In which order units of a grid are taken."""

    NONE = ""  # nothing is placed, limits hold
    ROWWISE = "rowwise"
    DIAGONALWISE = "diagonalwise"


class PmuGrid(Struct, frozen=True):
    """Memory units of one chip, and an ``x`` by ``y`` checkerboard of memory and compute units."""

    pmus: int
    pmu_bytes: float
    x: int
    y: int
    placement: Placement
