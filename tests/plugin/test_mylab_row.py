"""The system of this package, checked with what dfcompile offers to every plug-in."""

from dfcompile.testing import check_system


def test_the_row_is_a_machine_to_map_on() -> None:
    system = check_system("mylab_row")

    assert system.chips == 8
    assert system.network.kind == "line"
