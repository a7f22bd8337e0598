"""Which of DFModel's own habits, by age of its code, an evaluation repeats."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Switches; the defaults are what is right."""

    all_reduce_factor: float = 0.0  # 0: by the design's `separate_rs_ag_for_ar`
    periodic_factor: float = 0.0  # 0: as above
    network_is_sum: bool = False  # tensor and data parallel traffic one after the other, not at once
    periodic_gb_per_s: float = 0.0  # 0: the bandwidth of the links
    all_to_all_as_given: bool = False  # size is that of one chip already
    oldest_all_to_all: bool = False  # bytes per pair rounded up; last dimension with a quarter of its bandwidth
    tile_size_is_a_hint: bool = False  # a given tile size only bounds the tiles from above


RIGHT = Compatibility()
