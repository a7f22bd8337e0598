"""Uniform choices: every expansion of every type with every other, as far as that is no more than may be."""

from itertools import product

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Space
from dfcompile.options import Choice


def names(op_type: str, count: int) -> tuple[str, ...]:
    return tuple(f"{op_type}{number}" for number in range(count))


def space(**counts: int) -> Space:
    known = {op_type: names(op_type, count) for op_type, count in counts.items()}
    return Space(known, {}, {}, (), (Granularity(), Granularity(pieces=4)))


def test_each_expansion_is_combined_with_every_other() -> None:
    """Of DeepLab's 120 combinations of Conv, Resize, MatMul and Sample the first 64 had no `winograd`."""
    counts = {"Conv": 5, "MatMul": 4, "Resize": 2, "Sample": 3}
    several = product(*([Choice(op_type, name) for name in names(op_type, count)] for op_type, count in counts.items()))
    combinations = [(), *several]

    found = list(space(**counts).uniform())

    assert [each.choices for each in found if each.granularity.pieces is None] == combinations
    assert [each.choices for each in found if each.granularity.pieces == 4] == combinations


def test_of_very_many_types_the_last_are_varied_together() -> None:
    counts = {f"T{number}": 4 for number in range(6)} | {"U": 3, "V": 2}

    found = [each.choices for each in space(**counts).uniform() if each.granularity.pieces is None]

    first = {choices[:6] for choices in found[1:]}
    assert len(first) == 4**6
    assert len(found) == 1 + 3 * 4**6
    last = {tuple(choice.name for choice in choices[6:]) for choices in found[1:]}
    assert last == {("U0", "V0"), ("U1", "V1"), ("U2", "V0")}
