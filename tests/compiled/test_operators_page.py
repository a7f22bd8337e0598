"""The page of operators is as operators are claimed now, and its counts of node tests hold."""

from random import Random

import pytest

from tests.examples import TIMES
from tests.onnx_node_cases import every_case
from tests.operators_page import PAGE, not_passed, outcome, page

SAMPLE = 60  # node tests that are run each time; all of them in a long run


@pytest.mark.slow
def test_page_is_what_is_claimed() -> None:
    """Else ``python -m tests.operators_page`` writes it anew."""
    assert PAGE.read_text() == page()


@pytest.mark.slow
def test_node_tests_pass_or_are_listed() -> None:
    failing = not_passed()
    drawn = every_case() if TIMES >= 1 else Random(0).sample(every_case(), SAMPLE)

    assert {case.name: bool(outcome(case)) for case in drawn} == {case.name: case.name in failing for case in drawn}


@pytest.mark.slow
def test_nothing_is_listed_that_there_is_not() -> None:
    assert set(not_passed()) <= {case.name for case in every_case()}
