"""The solver of this package, checked with what dfcompile offers to every plug-in."""

from mylab.greedy import greedy

from dfcompile.testing import check_solver


def test_chains_are_valid_and_never_faster_than_the_optimum() -> None:
    check_solver(greedy)
