"""Ancestors of nodes of a growing forest."""

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.scheduler.bounds.makespan import Ancestry


@given(st.lists(st.integers(0, 200), max_size=60), st.integers(0, 70))
def test_ancestors_are_those_of_a_walk_from_parent_to_parent(choices: list[int], steps: int) -> None:
    ancestry = Ancestry(len(choices) + 1)
    lines = [[0]]
    for node, choice in enumerate(choices, start=1):
        parent = choice % (node + 1)  # itself: a root
        lines.append([node, *(lines[parent] if parent < node else [])])
        if parent < node:
            ancestry.put(node, parent)

    for node, line in enumerate(lines):
        assert ancestry.above(node, steps) == (line[steps] if steps < len(line) else None)


def test_an_ancestor_far_above_is_found() -> None:
    ancestry = Ancestry(100_001)
    for node in range(1, 100_001):
        ancestry.put(node, node - 1)

    assert ancestry.above(100_000, 99_999) == 1
    assert ancestry.above(100_000, 12_345) == 100_000 - 12_345
