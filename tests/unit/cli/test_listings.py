"""Listings show what is registered and where it comes from."""

import pytest

from dfcompile.cli.listings import configs_listing, expansions_listing, ops_listing, passes_listing, systems_listing
from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_model, shipped_names

WIDTH = 120


def row(listing: str, *words: str) -> list[str]:
    """The one row that holds all the words."""
    (found,) = [line.split() for line in listing.splitlines() if set(words) <= set(line.split())]
    return found


def test_expansions_come_with_their_module_and_source_and_the_default_is_marked() -> None:
    listing = expansions_listing(WIDTH, verbose=True)

    assert row(listing, "MatMul", "mv")[:5] == [
        "MatMul",
        "*",
        "mv",
        "dfcompile.lowering.expansions.matmul",
        "dematteis23",
    ]
    assert row(listing, "MatMul", "lmv")[:2] == ["MatMul", "lmv"]
    assert "operators of ONNX" in listing
    assert "canonical operators" in listing
    assert max(map(len, listing.splitlines())) <= WIDTH


def test_without_more_words_expansions_are_a_row_per_operator_that_has_several() -> None:
    listing = expansions_listing(100)

    assert row(listing, "Conv")[1:] == ["direct+,", "fft,", "im2col*,", "winograd,", "winograd4"]
    products = ["columns,", "ip,", "lmv,", "mv*,", "op,", "rows,", "split-k{parts=2,4…4096}"]
    assert row(listing, "MatMul")[1:] == products
    assert "with one expansion: Abs, Acos," in listing
    assert len(listing.splitlines()) < 80
    assert max(map(len, listing.splitlines())) <= 100


def test_expansions_of_one_operator_come_with_what_they_do() -> None:
    listing = expansions_listing(WIDTH, "Conv")

    assert [line.split()[0] for line in listing.splitlines() if line.startswith(" Conv ")] == ["Conv"] * 5
    assert "F(4x4, 3x3)" in listing
    assert "canonical operators" not in listing
    with pytest.raises(UserError, match=r"no operator type 'Covn' \(did you mean 'Conv'\?\)"):
        expansions_listing(WIDTH, "Covn")


def test_operators_come_with_their_expansions() -> None:
    products = ["columns,", "ip,", "lmv,", "mv,", "op,", "rows,", "split-k{parts=2,4…4096}"]
    assert row(ops_listing(WIDTH), "canonical", "MatMul")[2:] == products
    assert row(ops_listing(WIDTH), "onnx", "Conv")[2:] == ["direct,", "fft,", "im2col,", "winograd,", "winograd4"]


def test_passes_are_listed_or_it_is_said_that_there_is_none() -> None:
    assert "what it does" in passes_listing(WIDTH) or passes_listing(WIDTH) == "no lowering pass is registered\n"


def test_systems_come_with_their_size() -> None:
    assert row(systems_listing(WIDTH), "canonical")[:5] == ["canonical", "1", "as", "many", "as"]


def test_devices_of_language_models_stand_beside_systems() -> None:
    name, *rates, memory, bandwidth, link = row(systems_listing(WIDTH), "h200-sxm")

    assert (name, float(memory), bandwidth, link) == ("h200-sxm", 131.3, "4,800", "450")  # 141 GB
    assert rates[:2] == ["bf16", "989,"]


def test_every_configuration_is_listed_with_its_parameters() -> None:
    listing = configs_listing(WIDTH)

    for name in shipped_names():
        assert [name, read_model(name).model_type] in [line.split()[:2] for line in listing.splitlines()]
    assert row(listing, "mixtral-8x7b")[2:5] == ["46.7", "12.88", "32"]  # as its makers say: 46.7 and 12.9
