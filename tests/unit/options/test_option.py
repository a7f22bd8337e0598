"""A table of options is read from values of Python and from texts alike, and says what it does not know."""

import inspect
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import click
import pytest

from dfcompile.api.bound_model import bounds
from dfcompile.api.compile_model import compile_model
from dfcompile.api.explore_model import explore_model
from dfcompile.api.language_models import llm
from dfcompile.api.schedule_dag import schedule
from dfcompile.api.solve_design import solve
from dfcompile.cli.table_command import table_command
from dfcompile.errors import InternalError, UserError
from dfcompile.options import (
    DagOptions,
    Expand,
    ExploreOptions,
    Granularities,
    Options,
    SetupOptions,
    Timing,
    of_stage,
    option,
    options_of,
    read_options,
    table,
    takes,
)
from dfcompile.options.commands import BoundsOptions
from dfcompile.options.language_models import LanguageOptions
from dfcompile.options.option import defaults_of

TABLES = (BoundsOptions, DagOptions, ExploreOptions, LanguageOptions, Options, SetupOptions)


@table
class Few:
    """A table of this test."""

    pes: tuple[int, ...] = option("Numbers.")
    chips: tuple[int, ...] = option("Chips.", default=(1,), stage="mapping")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ({"pes": [16, 128]}, {"pes": ("16", "128")}),
        ({"pes": 16, "chips": range(1, 3)}, {"pes": "16", "chips": "1,2"}),
        ({"pes": 1, "expand": {"MatMul": ["mv", "op"]}}, {"pes": "1", "expand": ("MatMul=mv,op",)}),
        ({"pes": 1, "shapes": {"x": (1, 28)}}, {"pes": "1", "shapes": ("x=1x28",)}),
        ({"pes": 1, "dims": {"n": 0}}, {"pes": "1", "dims": ("n=0",)}),
        ({"pes": 1, "granularity": ["pieces=4", "a:split=2"]}, {"pes": "1", "granularity": ("pieces=4", "a:split=2")}),
        ({"pes": 1, "max_fifo": 4, "timing": Timing.STEADY}, {"pes": "1", "max_fifo": "4", "timing": "steady"}),
    ],
)
def test_values_and_texts_are_the_same(values: dict[str, Any], texts: dict[str, Any]) -> None:
    assert read_options(Options, {"model": "m", **values}) == read_options(Options, {"model": "m", **texts})


def test_what_is_not_given_is_the_default() -> None:
    asked = read_options(Options, {"model": "m", "pes": 4, "expand": (), "max_fifo": None})

    assert asked == Options(Path("m"), (4,))
    assert asked.expand == Expand(rest="quick")
    assert asked.granularity == Granularities()


def test_an_option_that_is_not_there_is_named_and_so_is_one_that_is_missing() -> None:
    with pytest.raises(TypeError, match=r"unexpected option 'chip' \(did you mean 'chips'\?\)"):
        read_options(Few, {"pes": 1, "chip": 2})
    with pytest.raises(TypeError, match="missing option 'pes'"):
        read_options(Few, {})
    with pytest.raises(UserError, match="--pes: found '' against a positive integer"):
        read_options(Few, {"pes": ""})


def test_a_field_that_says_nothing_is_a_bug() -> None:
    @table
    class Silent:
        pes: int = 1

    with pytest.raises(InternalError, match=r"Silent\.pes: found no option\(\) against one"):
        options_of(Silent)


def test_options_of_a_stage() -> None:
    assert of_stage(Few((1,), (2,)), "mapping") == {"chips": (2,)}


def test_an_option_in_the_table_is_on_the_command_line_and_in_python() -> None:
    seen: list[Few] = []

    @table_command("few", Few)
    def few(asked: Few) -> None:
        seen.append(asked)

    @takes(Few)
    def asked(**options: Any) -> Few:
        """Ask.

        Raises:
            UserError: no.
        """
        return read_options(Few, options)

    few.main(["--pes", "2,3", "--pes", "4"], standalone_mode=False)
    assert seen == [asked(pes=(2, 3, 4))]
    assert "[default: 1]" in few.get_help(click.Context(few))
    assert list(inspect.signature(asked).parameters) == ["pes", "chips"]
    assert inspect.signature(asked).parameters["chips"].default == (1,)
    assert "chips: Chips." in (asked.__doc__ or "")


CALLS = {
    bounds: BoundsOptions,
    compile_model: Options,
    explore_model: ExploreOptions,
    llm: LanguageOptions,
    schedule: DagOptions,
    solve: SetupOptions,
}


@pytest.mark.parametrize(("function", "asked"), CALLS.items(), ids=[function.__name__ for function in CALLS])
def test_signatures_have_types_and_defaults_that_may_be_given(function: Any, asked: type) -> None:
    said, parameters = options_of(asked), inspect.signature(function).parameters
    defaults = defaults_of(asked)
    for name in said.keys() & {name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}:
        shown, allowed = parameters[name].default, parameters[name].annotation
        assert (shown is None) == (name in defaults and defaults[name] is None) == (NoneType in get_args(allowed)), name
        assert Any not in (allowed, *get_args(allowed)), name
        assert allowed is not inspect.Parameter.empty, name
        if shown not in (None, (), inspect.Parameter.empty):  # which read_options takes for what nobody gives
            assert said[name].read(name, shown) == defaults[name], name


def test_words_files_and_names_are_told_apart_in_signatures() -> None:
    kinds = {name: one.annotation for name, one in inspect.signature(compile_model).parameters.items()}

    assert get_args(kinds["objective"]) == ("time", "makespan", "io", "energy", "cost")
    assert kinds["partition"] is str
    assert set(get_args(kinds["system"])) == {str, PathLike[str], NoneType}
    assert set(get_args(kinds["barrier"])) == {bool, NoneType}


@pytest.mark.parametrize("function", [explore_model, schedule, solve, llm])
def test_functions_have_the_options_of_their_table(function: Any) -> None:
    (options,) = (asked for asked in TABLES if set(options_of(asked)) <= set(inspect.signature(function).parameters))

    assert options is not Options


def test_defaults_of_every_table_are_what_their_texts_mean() -> None:
    """A default is written once, as a value: what the help shows of it reads as it."""
    for asked in TABLES:
        for name, default in defaults_of(asked).items():
            said = options_of(asked)[name]
            if isinstance(default, str) and default:
                assert said.read(name, default) == default
