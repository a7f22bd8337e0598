"""Families with recurrent mixers against the models that transformers builds of them, without weights."""

import importlib.util
import json
import random

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.hybrids import HYBRIDS, RECURRENT
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import parameters_of
from dfcompile.language_models.graph.exported import NEEDED, exported_trace
from dfcompile.language_models.model import Layer
from dfcompile.language_models.steps.batch import Sequences
from tests.built_families import VARIATIONS, built
from tests.built_hybrids import BUILT, HYBRID, drawn_hybrid

CASES = [json.loads(line) for line in BUILT.read_text().splitlines()]
ALIASES = {"conv": "linear_attention", "attention": "full_attention", "mamba": "linear_attention"}  # of kinds


def kind_of(layer: Layer) -> str:
    if layer.mixer is not None:
        return "linear_attention" if layer.attention is None else "hybrid"
    if layer.attention is not None:
        return f"{'sliding' if layer.attention.reach.extent else 'full'}_attention"
    return "mlp"


def test_every_family_was_built() -> None:
    assert set(HYBRID) == {*HYBRIDS, *RECURRENT}
    assert [case["values"]["model_type"] for case in CASES] == [name for name in HYBRID for _ in range(VARIATIONS)]


def test_parameters_and_kinds_of_layers_are_those_of_built_models() -> None:
    for case in CASES:
        model = model_of(Configuration("drawn", "drawn", case["values"]))
        kinds = [ALIASES.get(kind, kind).replace("moe", "mlp") for kind in case["types"]]

        assert parameters_of(model).total == case["total"], case["values"]
        assert [kind_of(layer) for layer in model.layers] == kinds, case["values"]


def test_other_variations_have_the_parameters_of_built_models() -> None:
    if any(importlib.util.find_spec(package) is None for package in NEEDED):
        with pytest.raises(UserError, match="--from-graph: needs"):
            exported_trace({"model_type": "llama"}, Sequences(0, 8), "llama")
        return
    draw = random.Random()
    asked = [drawn_hybrid(draw, family) for family in HYBRID for _ in range(5)]

    for values, (total, _) in zip(asked, built(asked), strict=True):
        assert parameters_of(model_of(Configuration("drawn", "drawn", values))).total == total, values
