"""The topology of this package, checked with what dfcompile offers to every plug-in."""

from mylab.line import LINE

from dfcompile.testing import check_topology


def test_a_row_keeps_to_its_links() -> None:
    check_topology(LINE)


def test_eight_chips_take_four_times_as_long_as_four() -> None:
    times = [LINE.all_to_all_ns_per_byte(chips, gb_per_s=1.0) for chips in (4, 8)]

    assert times == [4.0, 16.0]
