"""The share of a die that is best, by hand."""

from fractions import Fraction

import numpy as np

from dfcompile.bounds.curve import front
from dfcompile.bounds.die import Die, best_share


def test_memory_is_bought_as_long_as_traffic_takes_longer_than_compute() -> None:
    curve = front(np.array([1024, 2048, 8192]), np.array([4000, 1000, 500]))
    die = Die(area_pes=Fraction(5), operations_per_ns_per_pe=Fraction(1), bytes_per_ns=Fraction(10))
    best = best_share(curve, 400, die)

    assert (best.buffer_bytes, int(best.pes), int(best.time_ns)) == (2048, 4, 100)
