"""Texts of the command line become options, or an error that says what was expected."""

from fractions import Fraction

import pytest

from dfcompile.api.language_models import offload_of
from dfcompile.errors import UserError
from dfcompile.expansion_names import word_of
from dfcompile.options import Expand, ExpansionRule, options_of
from dfcompile.options.commands import BoundsOptions
from dfcompile.options.numbers import counts, sizes, slack
from dfcompile.options.readers import parse_expand, passes, shapes

within = options_of(BoundsOptions)["within"].read


def test_pes_keep_their_order() -> None:
    assert counts("--pes", "128, 16") == (128, 16)


@pytest.mark.parametrize("text", ["0", "-4", "x", "", "16,", "1.5", "1e3", "٣", "9" * 5000, "1000000001"])
def test_pes_that_are_no_positive_integer_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--pes: found .* against a positive integer"):
        counts("--pes", text)


def test_pes_twice_are_refused() -> None:
    with pytest.raises(UserError, match="--pes: 16 is given twice"):
        counts("--pes", "16,8,16")


def test_expansion_rule_of_one_operator() -> None:
    assert parse_expand(["/conv1/Conv:MatMul=mv,op"]) == (ExpansionRule("MatMul", ("mv", "op"), "/conv1/Conv"),)


@pytest.mark.parametrize("text", ["MatMul", "=mv", "MatMul=", "MatMul=mv,", "conv1:=mv"])
def test_expansion_rule_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--expand: found .* against \[ORIGIN:\]OP=NAME"):
        parse_expand([text])


def test_expansion_rule_twice_is_refused() -> None:
    with pytest.raises(UserError, match="--expand: MatMul is given twice"):
        parse_expand(["MatMul=mv", "MatMul=op"])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), "quick"),
        (("auto",), "auto"),
        (("published",), "published"),
        (("MatMul=mv,op",), "published"),
        (("MatMul=mv,op", "auto"), "auto"),
        ((" quick", "MatMul=mv,op"), "quick"),
        (("published", "MatMul=mv"), "published"),
    ],
)
def test_expansions_are_chosen_where_nothing_or_a_word_says_so(texts: tuple[str, ...], expected: str) -> None:
    assert word_of(texts) == expected


def test_words_exclude_each_other() -> None:
    with pytest.raises(UserError, match="--expand: found auto and published against one of them"):
        word_of(["published", "auto"])
    with pytest.raises(UserError, match="--expand: found auto and quick against one of them"):
        word_of(["auto", "quick"])


def test_combinations_are_the_product_of_the_rules_in_their_order() -> None:
    options = Expand(parse_expand(["MatMul=mv,op", "c:Conv=direct,im2col"]))

    found = [{choice.key: choice.name for choice in combination} for combination in options.combinations]

    assert found == [
        {"MatMul": "mv", "c:Conv": "direct"},
        {"MatMul": "mv", "c:Conv": "im2col"},
        {"MatMul": "op", "c:Conv": "direct"},
        {"MatMul": "op", "c:Conv": "im2col"},
    ]


def test_without_rules_there_is_one_combination() -> None:
    assert Expand().combinations == ((),)


def test_shapes_by_input() -> None:
    assert dict(shapes("--shape", ["x=1x1x28x28", "a=b=3"])) == {"x": (1, 1, 28, 28), "a=b": (3,)}


@pytest.mark.parametrize("text", ["x", "x=", "x=1xN", "x=1x-3", "x=1xnan", "=3"])
def test_shapes_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--shape"):
        shapes("--shape", [text])


def test_shape_twice_is_refused() -> None:
    with pytest.raises(UserError, match="input 'x' is given twice"):
        shapes("--shape", ["x=1", "x=2"])


def test_passes_in_order() -> None:
    assert passes("--passes", "b, a") == ("b", "a")


@pytest.mark.parametrize("text", ["", "a,,b", "a,a"])
def test_passes_without_name_or_twice_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--passes"):
        passes("--passes", text)


def test_slack_is_a_percentage() -> None:
    assert slack("--slack", "0") == 0
    assert slack("--slack", "12.5") == Fraction(1, 8)
    assert slack("--slack", "1e2") == slack("--slack", "100") == 1


@pytest.mark.parametrize("text", ["", "-1", "5%", "1e4", "1e", "1e9999", "1001", "½", "٣", "1.", "nan"])
def test_slack_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="against a percentage from 0 to 1000, such as 10"):
        slack("--slack", text)


def test_numbers_may_have_exponents_and_fractions() -> None:
    assert within("--within", "1e9") == 1e9
    assert within("--within", "1.5E+1") == 15
    assert sizes("B")("--buffer", "1e6,1.5KiB") == (1_000_000, 1536)
    assert sizes("kB")("--on-chip-memory", "1e3,0.5MB") == (1000 * 1024, 512 * 1024)
    assert offload_of("5e-1") == Fraction(1, 2)


@pytest.mark.parametrize("text", ["0.5", "1e-1", "1e999", "inf", "nan", "", "1e", "-2", "1" * 60])
def test_factors_below_1_or_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--within: found .* against a number of 1 or more"):
        within("--within", text)


@pytest.mark.parametrize("unit", ["", "b", "k", "kB", "KiB", "m", "MB", "mib", "G", "gb", "GiB"])
@pytest.mark.parametrize("plain", ["B", "kB"])
def test_units_of_sizes_are_powers_of_1024(unit: str, plain: str) -> None:
    power = " kmg".index((unit or plain)[0].lower().replace("b", " "))

    assert sizes(plain)("--size", f"1.5e1{unit},3 {unit}") == (15 * 1024**power, 3 * 1024**power)
    assert sizes(plain)("--size", (3, f"7{unit}")) == (3 * 1024 ** (plain == "kB"), 7 * 1024**power)


@pytest.mark.parametrize("plain", ["B", "kB"])
@pytest.mark.parametrize(
    "text",
    ["", "0", "3 apples", "8XB", "-1", "-8KiB", "1.5B", "0.3B", "1e-3B", "1,1", "1kB,1024B", "1.0000001KiB", "1e99",
     "9999999999GB", "9007199254740993KiB", "256,", "٣", "1 k i"],
)  # fmt: skip
def test_sizes_are_whole_bytes_each_once(text: str, plain: str) -> None:
    with pytest.raises(UserError, match=r"^--size: "):
        sizes(plain)("--size", text)
