"""Python looks for garbage seldom within calls, and as often as before after them."""

import gc

import pytest

from dfcompile.errors import UserError
from dfcompile.host.garbage import collected_seldom


def test_thresholds_are_as_before_after_a_call_even_if_it_fails() -> None:
    @collected_seldom()
    def within(*, fails: bool) -> int:
        if fails:
            raise UserError("no")
        return gc.get_threshold()[0]

    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        assert within(fails=False) > 700
        with pytest.raises(UserError):
            within(fails=True)
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*before)
