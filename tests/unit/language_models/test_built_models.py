"""Random variations of configurations against the models that transformers builds of them, without weights."""

import importlib.util
import json
import random

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.configuration.rows import ROWS
from dfcompile.language_models.footprint import parameters_of
from dfcompile.language_models.graph.exported import NEEDED, exported_trace
from dfcompile.language_models.model import Mask
from dfcompile.language_models.steps.batch import Sequences
from tests.built_families import OTHERS, OTHERS_BUILT, VARIATIONS, built, drawn, drawn_other


def test_variations_have_the_parameters_of_built_models() -> None:
    if any(importlib.util.find_spec(package) is None for package in NEEDED):
        with pytest.raises(UserError, match="--from-graph: needs"):
            exported_trace({"model_type": "llama"}, Sequences(0, 8), "llama")
        return
    draw = random.Random()
    asked = [drawn_other(draw, OTHERS[number % len(OTHERS)]) for number in range(200)]
    asked += [drawn(draw, name) for name in ROWS for _ in range(10)]

    for values, (total, _) in zip(asked, built(asked), strict=True):
        found = parameters_of(model_of(Configuration("drawn", "drawn", values)))
        assert found.total == total, values


def test_layers_that_see_all_are_those_of_the_classes() -> None:
    cases = [json.loads(line) for line in OTHERS_BUILT.read_text().splitlines()]

    known = {
        "full_attention": True,
        "global": True,
        "sliding_attention": False,
        "chunked_attention": False,
        "local": False,
    }
    checked = set()
    for case in (case for case in cases if case["types"] and known.keys() >= set(case["types"])):
        attentions = model_of(Configuration("drawn", "drawn", case["values"])).attentions
        assert [one.reach.mask is Mask.FULL for one in attentions] == [known[one] for one in case["types"]], case
        checked.add(case["values"]["model_type"])
    assert checked >= {"gemma3n_text", "gemma4_text", "gpt_neo", "llama4_text", "mimo_v2_flash", "qwen2"}


def test_recorded_variations_have_the_parameters_of_built_models() -> None:
    cases = [json.loads(line) for line in OTHERS_BUILT.read_text().splitlines()]

    assert [case["values"]["model_type"] for case in cases] == [name for name in OTHERS for _ in range(VARIATIONS)]
    for case in cases:
        found = parameters_of(model_of(Configuration("drawn", "drawn", case["values"])))
        assert found.total == case["total"], case["values"]
