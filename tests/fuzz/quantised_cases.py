"""Language models with a ``quantization_config``; judged by ``dfcompile llm``, whose figures are counted by hand.

Some configurations have a key that no format has, at any depth, or a value of a wrong type, or keep a part of a class
of matrices of a layer alone: these are to be refused, and the message is to name the place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.fuzz.command_line import run_command
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.fuzz.quantised_methods import FREE, METHODS, Drawn, Keys, Stored
from tests.fuzz.quantised_models import DrawnModel, Matrix, drawn_model

TOKENS = 16
DTYPES = {"bfloat16": Stored("bf16", 16), "float16": Stored("fp16", 16), "float32": Stored("fp32", 32)}
RATES = {"bf16": 100, "fp16": 101, "fp32": 50, "fp8": 203, "int8": 207, "nvfp4": 409, "mxfp4": 419, "int4": 431}
CONTAINERS = {"attention": ("self_attn", "attn"), "experts": ("experts",), "mlp": ("mlp",), "head": ("lm_head",)}
KINDS = {
    "qkv_proj": "attention", "o_proj": "attention", "q_a_proj": "attention", "q_b_proj": "attention",
    "kv_a_proj": "attention", "kv_b_proj": "attention", "gate_up": "mlp", "up": "mlp", "down": "mlp",
    "shared_gate_up": "mlp", "shared_down": "mlp", "router": "router", "lm_head": "head", "expert_gate_up": "experts",
    "expert_down": "experts",
}  # fmt: skip
UNKNOWN = ("quantised_moons", "bitz", "groupsize", "Bits", "q_type", "é")
TABLES = ("module_fqn_to_config",)  # any name in them is one of a module
STRANGE: tuple[object, ...] = ([[[0]]], {"moons": 3})


def drawn_configuration(draw: Draw) -> Case:
    """Return a configuration and, as JSON, what it says: figures, or what a refusal has to name."""
    model, dtype = drawn_model(draw), draw.choice(["bfloat16", "bfloat16", "float16", "float32"])
    base = DTYPES[dtype]
    drawn = METHODS[draw.choice(sorted(METHODS))](draw, base.width)
    stored, multiplied = _changed(drawn, model, draw, base)
    _keep(drawn, model, draw, stored, base)
    expected = _expected(drawn, model, stored, multiplied, base)
    keys: Keys = json.loads(json.dumps(drawn.keys))  # no two places share a mapping
    key = "compression_config" if draw.chance(0.1) else "quantization_config"
    if draw.chance(0.35):
        expected = _with_unknown_key(keys, key, draw)
    elif draw.chance(0.2):
        expected |= {"or_names": _with_strange_value(keys, key, draw)}
    values = {**model.values, draw.choice(["dtype", "torch_dtype"]): dtype, key: keys}
    return Case(".json", json.dumps(values).encode(), expected=json.dumps(expected))


def judge_configuration(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    show("dfcompile")
    machine, report = Path("machine.csv"), Path("report.json")
    rates = "".join(f"peak.{name} [TFLOP/s],{rate}\n" for name, rate in RATES.items())
    machine.write_text(f"name,arrays\n{rates}memory.bandwidth [TB/s],1\n")
    report.unlink(missing_ok=True)
    words = ["llm", "--config", str(path), "--system", f"{machine}:arrays", "--prefill", str(TOKENS)]
    outcome = run_command([*words, "--format", "json", "-o", str(report)])
    expected = json.loads(case.expected)
    if outcome.verdict is Verdict.REFUSED:
        return _judged_refusal(outcome, expected)
    if outcome.verdict is not Verdict.ACCEPTED:
        return outcome
    if "names" in expected:
        return Outcome(Verdict.SILENT, f"silent: {expected['why']}", f"expected {expected['names']!r} to be named")
    wrong = list(_differences(json.loads(report.read_text()), expected))
    return (
        Outcome(Verdict.MISCOUNTED, f"{expected['method']}: {wrong[0][0]}", "\n".join(map(str, wrong)))
        if wrong
        else outcome
    )


def _judged_refusal(outcome: Outcome, expected: Mapping[str, object]) -> Outcome:
    if any(str(expected[word]) in outcome.detail for word in ("names", "or_names") if word in expected):
        return outcome
    detail = f"{outcome.detail}\nexpected: {json.dumps(expected)}"
    return Outcome(Verdict.WRONGLY_REFUSED, f"{expected['method']}: {outcome.cause}", detail)


def _changed(
    drawn: Drawn, model: DrawnModel, draw: Draw, base: Stored
) -> tuple[dict[str, Stored], dict[str, Stored | None]]:
    """Return the format of every matrix by name, and what it is multiplied with where it is quantised."""
    stored: dict[str, Stored] = {}
    multiplied: dict[str, Stored | None] = {}
    for matrix in model.matrices:
        is_quantised = drawn.weights is not None and matrix.kind in (
            drawn.only or ("attention", "mlp", "experts", "head")
        )
        stored[matrix.name] = drawn.weights if is_quantised and drawn.weights is not None else base
        if is_quantised:
            multiplied[matrix.name] = drawn.activations
    if drawn.second is not None and draw.chance(0.3):
        kind = draw.choice([kind for kind in model.kinds if kind in ("attention", "mlp", "experts")])
        names = [matrix.name for matrix in model.of_kind(kind)]
        if draw.chance(0.5):
            names = _of_some_layers(model.of_kind(kind), draw)
        made, found = drawn.second(draw, names)
        for name in names:
            stored[name] = base if made is None else made
            multiplied[name] = found
            if made is None:
                del multiplied[name]
    return stored, multiplied


def _keep(drawn: Drawn, model: DrawnModel, draw: Draw, stored: dict[str, Stored], base: Stored) -> None:
    """List some modules as those that stay, in the configuration and in what is expected."""
    holder = drawn.keys[drawn.inside] if drawn.inside else drawn.keys
    assert isinstance(holder, dict)
    kept: list[Matrix] = []
    listed = draw.chance(0.8)
    entries: list[str] = []
    if listed:
        for kind in draw.some([kind for kind in model.kinds if kind != "embedding"]):
            if kind == "head" and draw.chance(0.3):
                continue
            matrices = model.of_kind(kind)
            if draw.chance(0.3):
                names = _of_some_layers(matrices, draw)
                matrices = [matrix for matrix in matrices if matrix.name in names]
                entries += names
            else:
                entries += _spelled(kind, matrices, model, draw)
            kept += matrices
        entries += draw.some(["visual", "re:.*vision_tower.*", "model.norm"])
        holder[draw.choice(drawn.lists)] = entries
    if "head" in model.kinds and (drawn.head == "never" or (drawn.head == "absent" and not listed)):
        kept += model.of_kind("head")
    for matrix in kept:
        stored[matrix.name] = base


def _of_some_layers(matrices: Sequence[Matrix], draw: Draw) -> list[str]:
    """Return names of all matrices of some layers; now and then of any matrices."""
    layers = draw.some(sorted({matrix.layer for matrix in matrices}), 1)
    whole = [matrix.name for matrix in matrices if matrix.layer in layers]
    return draw.some(whole, 1) if draw.chance(0.2) else whole


def _spelled(kind: str, matrices: Sequence[Matrix], model: DrawnModel, draw: Draw) -> list[str]:
    """Return entries of a list that name all matrices of a kind and no others."""
    names = [matrix.name for matrix in matrices]
    others = [matrix.name for matrix in model.matrices if matrix.kind != kind]
    word = next((one for one in CONTAINERS.get(kind, ()) if all(f".{one}." in f".{name}." for name in names)), "")
    if not word or any(f".{word}." in f".{name}." for name in others) or draw.chance(0.3):
        shuffled = draw.some(names, len(names))
        return [draw.choice([name, f"re:{name.replace('.', chr(92) + '.')}$"]) for name in shuffled]
    if kind == "head":
        return [draw.choice(["lm_head", "*lm_head*", "re:.*lm_head", "re:lm_head$"])]
    return [
        draw.choice([word, f"*.{word}.*", f"*.{word}*", rf"re:.*\.{word}\..*", rf"re:.*\.{word}\.", rf".*\.{word}\."])
    ]


def _expected(
    drawn: Drawn, model: DrawnModel, stored: Mapping[str, Stored], multiplied: Mapping[str, Stored | None], base: Stored
) -> Keys:
    """Return what a report has to say, or what a refusal has to name."""
    method = str(drawn.keys.get("quant_method"))
    forms: dict[tuple[str, int, bool], set[Stored]] = {}
    for matrix in model.matrices:
        forms.setdefault((matrix.kind, matrix.layer, matrix.is_shared), set()).add(stored[matrix.name])
    if any(len(found) > 1 for found in forms.values()):
        return {"method": method, "names": " modules in ", "why": "a class of a layer in several formats"}
    inputs = {multiplied[name] or base for name, form in stored.items() if form != base and name in multiplied}
    if len(inputs) > 1:
        return {"method": method, "names": "activations in ", "why": "several formats of activations"}
    activations = next(iter(inputs), base)
    if activations.name not in RATES:
        activations = base
    of_layers = {key: next(iter(found)) for key, found in forms.items()}
    of_layers.setdefault(("head", -1, False), of_layers["embedding", -1, False])
    saved = sum((matrix.elements * (base.bits - stored[matrix.name].bits) for matrix in model.matrices), Fraction(0))
    kv = drawn.kv or base
    return {
        "method": method,
        "saved_bits": str(saved),
        "base_bits": base.width,
        "kv_bytes_per_token": kv.bytes_of(model.cached),
        "formats": {"a": activations.name, "kv": kv.name},
        "layers": [
            [kind, is_shared, str(form.bits), form.name if form.width > activations.width else activations.name]
            for (kind, _, is_shared), form in of_layers.items()
        ],
    }


def _differences(report: Any, expected: Any) -> Iterator[tuple[str, object, object]]:
    """Yield what a report says otherwise: name, found, expected."""
    model = report["model"]
    whole = model["parameters"] * int(str(expected["base_bits"])) - Fraction(str(expected["saved_bits"]))
    yield from _unless("weight_bytes", model["weight_bytes"], whole / 8, Fraction(1, 10**6))
    if model["kv_bytes_per_token"] != expected["kv_bytes_per_token"]:
        yield "kv_bytes_per_token", model["kv_bytes_per_token"], expected["kv_bytes_per_token"]
    said = dict(part.split("=") for part in str(model["formats"]).split(","))
    for word, name in expected["formats"].items():
        if said[word] != name:
            yield f"format of {word}", said[word], name
    kernels = report["steps"][0]["kernels"]
    for name, kind in KINDS.items():
        found = [kernel for kernel in kernels if kernel["name"] == name]
        layers = [one for one in expected["layers"] if one[:2] == [kind, name.startswith("shared")]]
        if not found:
            continue
        if sum(kernel["count"] for kernel in found) != len(layers):
            yield f"number of {name}", sum(kernel["count"] for kernel in found), len(layers)
        macs, elements = found[0]["macs"], found[0]["k"] * found[0]["n"]
        moved = Fraction(sum(kernel["count"] * kernel["weight_bytes"] for kernel in found))
        if kind != "experts":
            counted = sum((elements * Fraction(bits) / 8 for *_, bits, _ in layers), Fraction(0))
            yield from _unless(f"weights of {name}", moved, counted, Fraction(1, 10**3))
        took = sum((kernel["count"] * Fraction(kernel["compute_s"]) for kernel in found), Fraction(0))
        seconds = sum((Fraction(2 * macs, RATES[rate] * 10**12) for *_, rate in layers), Fraction(0))
        yield from _unless(f"time of {name}", took, seconds, Fraction(1, 10**6))


def _unless(
    name: str, found: int | Fraction, counted: Fraction, tolerance: Fraction
) -> Iterator[tuple[str, object, object]]:
    if abs(found - counted) > tolerance * counted:
        yield name, float(found), float(counted)


def _with_unknown_key(keys: Keys, path: str, draw: Draw) -> Keys:
    """Put a key that no format has into one of the mappings; return what a refusal has to name."""
    holders = [(at, found) for at, found in _places(keys, path) if isinstance(found, dict)]
    where, holder = draw.choice([place for place in holders if not place[0].endswith(TABLES)])
    assert isinstance(holder, dict)
    name = draw.choice(UNKNOWN)
    holder[name] = draw.choice([3, "a", None, True, [], {"b": 1}])
    return {"method": str(keys.get("quant_method")), "names": f"{where}.{name}", "why": "an unknown key"}


def _with_strange_value(keys: Keys, path: str, draw: Draw) -> str:
    """Give a key a value of a wrong type; return its path."""
    holders = [(at, found) for at, found in _places(keys, path) if isinstance(found, dict) and found]
    where, holder = draw.choice(holders)
    assert isinstance(holder, dict)
    key = draw.choice(sorted(holder))
    holder[key] = draw.choice(STRANGE)
    return f"{where}.{key}"


def _places(found: object, path: str) -> Iterator[tuple[str, object]]:
    yield path, found
    if isinstance(found, dict):
        for key, value in found.items():
            if key not in FREE:
                yield from _places(value, f"{path}.{key}")
