"""Every mutant still changes what it is meant to change, and has tests that ought to kill it."""

import ast

import pytest

from tests.locations import ROOT
from tests.mutants.catalogue import MUTANTS, concerned_tests
from tests.mutants.mutant import Mutant

EVERY = [mutant for mutants in MUTANTS.values() for mutant in mutants]
PER_AREA = 20


def test_there_are_enough_of_each_area() -> None:
    assert {area: len(mutants) for area, mutants in MUTANTS.items() if len(mutants) < PER_AREA} == {}
    assert len({mutant.name for mutant in EVERY}) == len(EVERY)


def test_every_mutant_is_another_program() -> None:
    package = ROOT / "dfcompile"
    for mutant in EVERY:
        mutated, original = mutant.applied(package), (package / mutant.file).read_text()

        if mutant.file.endswith(".py"):
            assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(original)), mutant.name


def test_every_mutant_has_tests() -> None:
    for mutant in EVERY:
        assert any((ROOT / test).exists() for test in concerned_tests(mutant.file)), mutant.name


def test_a_text_that_has_gone_is_told() -> None:
    gone = Mutant("errors.py", "no such text", "")

    with pytest.raises(LookupError, match=r"errors\.py: no such text -> : text found 0 times against once"):
        gone.applied(ROOT / "dfcompile")
