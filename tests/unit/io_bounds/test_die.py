"""The share of a die that is best, by hand."""

from fractions import Fraction

import numpy as np

from dfcompile.io_bounds.curve import front
from dfcompile.io_bounds.die import Die, best_share, die_of


def test_memory_is_bought_as_long_as_traffic_takes_longer_than_compute() -> None:
    curve = front(np.array([1024, 2048, 8192]), np.array([4000, 1000, 500]))
    die = Die(area_pes=Fraction(5), operations_per_ns_per_pe=Fraction(1), bytes_per_ns=Fraction(10))
    best = best_share(curve, 400, die)

    assert best is not None
    assert (best.buffer_bytes, int(best.pes), int(best.time_ns)) == (2048, 4, 100)
    assert best.memory_share == Fraction(1, 5)


def test_a_die_is_what_memory_and_compute_take() -> None:
    die = die_of(4096, 3, Fraction(6), Fraction(7))

    assert die == Die(Fraction(5), Fraction(2), Fraction(7))


def test_a_die_without_room_for_compute_has_no_share() -> None:
    curve = front(np.array([10 * 1024]), np.array([4000]))

    assert best_share(curve, 400, die_of(8 * 1024, 1, Fraction(1), Fraction(1))) is None
