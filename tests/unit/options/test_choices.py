"""Choices are looked up by operator."""

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.options import Choice, Choices

NAMES = ("a", "a.b", "a/b", "a.b.c", "ab", "a.*", "?", "")


@given(st.lists(st.sampled_from(NAMES)), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_what_is_left_out_fits_no_operator(origins: list[str], origin: str, step: str) -> None:
    """Those that fit are found in the order in which they were given."""
    choices = [Choice("", str(number), name) for number, name in enumerate(origins)]

    about = Choices(choices).about(origin, step)

    fitting = [choice for choice in choices if choice.fit("Add", origin, step) is not None]
    assert [choice for choice in about if choice in fitting] == fitting


def test_of_many_choices_few_are_about_an_operator() -> None:
    choices = Choices(Choice("", "ip", f"layer.{number}") for number in range(100))

    assert choices.about("layer.7.matmul") == (Choice("", "ip", "layer.7"),)
