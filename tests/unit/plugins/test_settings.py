"""Options of a plug-in: read by their types, with errors that name plug-in, option and what is near."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import RegistrationError, UserError
from dfcompile.options.readers import passes
from dfcompile.plugins.settings import Setting, SettingValue, call_with, parse_call, settings_of, values_of, written


def part(value: object, *, most: int = 8, deep: bool = False, name: str = "x", rate: float = 0.5) -> object:
    return value, most, deep, name, rate


@dataclass(frozen=True)
class Part:
    most_operands: int
    deep: bool = False

    def __call__(self, value: object) -> object:
        return value, self.most_operands, self.deep


def called(text: str, what: "object" = part) -> object:
    assert callable(what)
    settings = settings_of(what, "pass 'p'")
    return call_with(what, "v", values_of(parse_call(text, "--passes"), settings, "--passes"))


def test_parameters_of_a_function_and_fields_of_a_dataclass() -> None:
    assert called("p") == ("v", 8, False, "x", 0.5)
    assert called("p{most=-3, deep=true,name=a b,rate=1e3}") == ("v", -3, True, "a b", 1000.0)
    assert called("p{most-operands=4}", Part) == ("v", 4, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p{mosst=3}", r"^--passes p: no option 'mosst' \(did you mean 'most'\?\)$"),
        ("p{most=3.5}", r"^--passes p: option 'most': found '3.5' against an integer$"),
        ("p{most=}", r"option 'most': found '' against an integer$"),
        ("p{most=1_0}", r"found '1_0' against an integer$"),
        (f"p{{most={'9' * 5000}}}", r"against an integer$"),
        ("p{deep=yes}", r"option 'deep': found 'yes' against true or false$"),
        ("p{rate=nan}", r"option 'rate': found 'nan' against a number$"),
        ("p{deep}", r"^--passes p: found 'deep' against OPTION=VALUE$"),
        ("p{most=1,most=2}", r"^--passes p: option 'most' is given twice$"),
        ("p{most=1", r"against NAME or NAME\{OPTION=VALUE,…\}$"),
        ("{most=1}", r"against NAME or NAME\{OPTION=VALUE,…\}$"),
        ("p{most=1}}", r"against NAME or NAME\{OPTION=VALUE,…\}$"),
    ],
)
def test_errors_name_the_option(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        called(text)


def test_an_option_without_a_default_has_to_be_given() -> None:
    with pytest.raises(
        UserError, match=r"^--passes p: option 'most-operands' is missing \(most-operands=an integer\)$"
    ):
        called("p", Part)


def test_a_part_without_options_says_so() -> None:
    def plain(value: object) -> object:
        return value

    with pytest.raises(UserError, match=r"^--passes p: no option 'a' \(it has none\)$"):
        called("p{a=1}", plain)


def test_other_types_are_refused_when_the_part_is_made() -> None:
    def odd(value: object, *, sizes: list[int]) -> object:
        return value, sizes

    def wrong(value: object, *, most: int = "many") -> object:  # type: ignore[assignment]
        return value, most

    with pytest.raises(RegistrationError, match="pass 'p': option 'sizes': type list against int, bool, str or float"):
        settings_of(odd, "pass 'p'")
    with pytest.raises(RegistrationError, match="pass 'p': option 'most': default 'many' against an integer"):
        settings_of(wrong, "pass 'p'")


values = st.one_of(st.integers(-(10**17), 10**17), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))


@given(values)
def test_what_a_listing_shows_is_what_may_be_written(value: SettingValue) -> None:
    assert Setting("a", type(value), None).value(written(value), "--passes p") == value


names = st.text("abc-", min_size=1).filter(lambda name: name.strip("-"))
calls = st.builds(
    lambda name, options: (
        name + (f"{{{','.join(f'{key}={value}' for key, value in options.items())}}}" if options else "")
    ),
    names,
    st.dictionaries(names, st.text("abc=.12", min_size=1), max_size=3),
)


@given(st.lists(calls, min_size=1, max_size=4, unique_by=lambda text: text.partition("{")[0]))
def test_a_list_of_passes_is_split_outside_of_braces(texts: list[str]) -> None:
    assert passes("--passes", ",".join(texts)) == tuple(texts)
