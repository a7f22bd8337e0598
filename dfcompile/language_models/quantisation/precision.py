"""The formats of all classes of matrices, as a configuration states them [hf]."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import QUANTISED_BESIDE, QUANTISED_BY
from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision, uniform
from dfcompile.language_models.model import Model
from dfcompile.language_models.quantisation.keys import Place
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, modules_of, representative_experts
from dfcompile.plugins.kind import own_modules, values_in
from dfcompile.records import replace

_METHODS = "dfcompile.language_models.quantisation.methods"
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
MOST_MATCHES = 5_000_000  # of modules with entries of lists: some seconds


@cache
def methods() -> Mapping[str, Method]:
    """Return all methods by name."""
    found = [method for module in own_modules(_METHODS) for method in values_in(module, Method)]
    return {name: method for method in found for name in (method.name, *method.other_names)}


def precision_of(values: Mapping[str, object], model: Model, where: str) -> tuple[Precision, tuple[str, ...]]:
    """Return the formats that a configuration states, and notes of what was assumed.

    Embedding and routers stay as the configuration's dtype unless they are named; biases and norms always do.

    Args:
        values: of the configuration.
        model: that it is of.
        where: the file, in errors.

    Raises:
        UserError: an unknown dtype or method, a key that its format has not, one whose value is wrong, or one that says
            what is not modelled.
    """
    base, notes = _dtype(values, where)
    key = next((key for key in (*QUANTISED_BY, *QUANTISED_BESIDE) if values.get(key) is not None), None)
    if key is None:
        return uniform(base), notes
    place = Place(where, key)
    method = _method(values[key], place)
    stated = method.stated(values[key], base, place)
    precision = _precision(stated, model, base, place)
    return precision, (*notes, *_said(precision, model, base, method.name), *stated.notes)


def _said(precision: Precision, model: Model, base: NumberFormat, method: str) -> Iterator[str]:
    """Yield notes of what is in which format, and of scales that are not counted."""
    there = dict.fromkeys(module.weights for module in modules_of(model, (0,)))
    forms = {word: getattr(precision, word) for word in there}
    yield f"matrices as configured ({method}): {', '.join(f'{word} {form.name}' for word, form in forms.items())}"
    others = Counter(one for formats in precision.layers for one in formats)
    if others:
        listed = ", ".join(f"{word} {form.name} in {count:,}" for (word, form), count in others.items())
        yield f"of {len(model.layers):,} layers: {listed}"
    if any(not form.group and form != base for form in (*forms.values(), *(form for _, form in others))):
        yield "scales of whole rows, columns or tensors are not counted"


def _dtype(values: Mapping[str, object], where: str) -> tuple[NumberFormat, tuple[str, ...]]:
    named = values.get("dtype", values.get("torch_dtype"))
    if named is None:
        return FORMATS["bf16"], ("dtype = bf16: left out",)
    form = _DTYPES.get(named.removeprefix("torch.")) if isinstance(named, str) else None
    if form is None:
        raise Place(where, "dtype").wrong(named, ", ".join(_DTYPES))
    return FORMATS[form], ()


def _method(found: object, place: Place) -> Method:
    if not isinstance(found, Mapping):
        raise place.wrong(found, "a mapping")
    name = found.get("quant_method")
    inside = place.inside("quant_method")
    if name is None:
        for method in methods().values():
            if any(mark in found for mark in method.marks):
                return method
        raise UserError(f"{place.where}: key '{inside.path}' is missing")
    if not isinstance(name, str):
        raise inside.wrong(name, "a text")
    inside.check(name, sorted(methods()))
    return methods()[name]


class _Held(Struct, frozen=True):
    """A module's name, the format of its matrix, and the place of what says so; none: nothing does."""

    name: str
    form: NumberFormat
    place: Place | None


def _precision(stated: Stated, model: Model, base: NumberFormat, place: Place) -> Precision:
    """Return the formats of all classes: those that most layers have, and what other layers have otherwise."""
    held: dict[str, dict[int, list[_Held]]] = {}
    activations: dict[NumberFormat, Rule] = {}
    modules = list(modules_of(model, representative_experts(stated.lists, model.most_experts)))
    patterns = sum(len(names.patterns) for names in stated.lists)
    if len(modules) * patterns > MOST_MATCHES:
        raise place.unmodelled(f"{patterns:,} patterns over {len(modules):,} modules")
    for module in modules:
        rule = stated.rule_for(module)
        form = base if rule is None or rule.weights is None else rule.weights
        blamed = rule.place if rule is not None else stated.kept.place if stated.kept.has(module) else None
        held.setdefault(module.weights, {}).setdefault(module.layer, []).append(_Held(module.names[0], form, blamed))
        if rule is not None and rule.weights is not None:
            activations.setdefault(rule.activations or base, rule)
    of_layers = {word: {at: _only(word, one, place) for at, one in layers.items()} for word, layers in held.items()}
    if len(activations) > 1:
        named = " and ".join(form.name for form in activations)
        raise list(activations.values())[-1].place.unmodelled(f"activations in {named}")
    most = {word: Counter(layers.values()).most_common(1)[0][0] for word, layers in of_layers.items()}
    layers = tuple(
        tuple((word, found[at]) for word, found in of_layers.items() if found.get(at, most[word]) != most[word])
        for at in range(len(model.layers))
    )
    most.setdefault("head", most["embedding"])  # a tied head is the embedding
    forms = {**most, "activations": next(iter(activations), base), "kv": stated.kv or base}
    return replace(uniform(base).having(forms), layers=layers if any(layers) else ())


def _only(weights: str, held: Sequence[_Held], place: Place) -> NumberFormat:
    """Return the one format of a class of matrices in a layer.

    Raises:
        UserError: there are several; blamed is what the fewest modules are by.
    """
    counts = Counter(one.form for one in held)
    if len(counts) == 1:
        return held[0].form
    firsts = {one.form: one for one in reversed(held)}
    fewest = min(counts, key=counts.__getitem__)
    places = (firsts[form].place for form in (fewest, *counts))
    blamed = next((one for one in places if one is not None), place)
    raise UserError(
        f"{place.where}: key '{blamed.path}': found {counts[fewest]:,} of {len(held):,} {weights} modules in "
        f"{fewest.name}, {firsts[fewest].name!r} the first, against all or none of its layer (--dtype says "
        "what each class is in, once the key is removed)"
    )
