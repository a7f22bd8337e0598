"""The pass of programs, with and without its option."""

from dfcompile.testing import check_pass

CHAIN = "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) y = Neg(t) }"


def test_the_array_between_two_operators_goes_through_memory() -> None:
    (streamed,) = check_pass("memory-only{above=6}", graphs=[CHAIN])
    (stored,) = check_pass("memory-only{above=5}", graphs=[CHAIN])

    assert stored.is_buffer.sum() == streamed.is_buffer.sum() + 1


def test_numbers_stay_the_same() -> None:
    check_pass("memory-only")
