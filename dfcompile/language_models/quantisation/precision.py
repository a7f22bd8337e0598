"""The formats of all classes of matrices, as a configuration states them [hf]."""

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import QUANTISED_BESIDE, QUANTISED_BY
from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision, uniform
from dfcompile.language_models.model import Model
from dfcompile.language_models.quantisation.modules import Module, modules_of, most_experts
from dfcompile.language_models.quantisation.names import representative_experts
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated
from dfcompile.plugins.modules import own_modules, values_in
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
    precision, is_rough = _precision(stated, model, base, place)
    there = dict.fromkeys(module.weights for module in modules_of(model, (0,)))
    shown = ", ".join(f"{name} {getattr(precision, name).name}" for name in there)
    said = f"matrices as configured ({method.name}): {shown}"
    rough = ("scales of whole rows, columns or tensors are not counted",) if is_rough else ()
    return precision, (*notes, said, *rough, *stated.notes)


def _dtype(values: Mapping[str, object], where: str) -> tuple[NumberFormat, tuple[str, ...]]:
    named = values.get("dtype", values.get("torch_dtype"))
    if named is None:
        return FORMATS["bf16"], ("dtype = bf16: left out",)
    if isinstance(named, str) and named.removeprefix("torch.") in _DTYPES:
        return FORMATS[_DTYPES[named.removeprefix("torch.")]], ()
    raise Place(where, "dtype").wrong(named, ", ".join(_DTYPES))


def _method(found: object, place: Place) -> Method:
    if not isinstance(found, Mapping):
        raise place.wrong(found, "a mapping")
    name = found.get("quant_method")
    if name is None:
        marked = (method for method in methods().values() if any(mark in found for mark in method.marks))
        if (method := next(marked, None)) is not None:
            return method
        raise UserError(f"{place.where}: key '{place.inside('quant_method').path}' is missing")
    if not isinstance(name, str):
        raise place.inside("quant_method").wrong(name, "a text")
    if name not in methods():
        raise place.inside("quant_method").unknown(name, sorted(methods()))
    return methods()[name]


class _Held(Struct, frozen=True):
    """Modules of a class that have one format."""

    first: Module
    count: int
    place: Place | None


def _precision(stated: Stated, model: Model, base: NumberFormat, place: Place) -> tuple[Precision, bool]:
    """Return the formats of all classes, and whether scales of whole rows are among them."""
    held: dict[str, dict[NumberFormat, _Held]] = {}
    activations: dict[NumberFormat, Rule] = {}
    for module, rule in _matched(stated, model, place):
        form = base if rule is None or rule.weights is None else rule.weights
        blamed = rule.place if rule is not None else stated.kept.place if stated.kept.has(module) else None
        of_class = held.setdefault(module.weights, {})
        before = of_class.get(form, _Held(module, 0, blamed))
        of_class[form] = replace(before, count=before.count + 1)
        if rule is not None and rule.weights is not None:
            activations.setdefault(rule.activations or base, rule)
    for weights, forms in held.items():
        if len(forms) > 1:
            raise _several(weights, forms, place)
    if len(activations) > 1:
        named = " and ".join(form.name for form in activations)
        raise list(activations.values())[-1].place.unmodelled(f"activations in {named}")
    stored = {weights: next(iter(forms)) for weights, forms in held.items()}
    precision = replace(
        uniform(base),
        attention=stored["attention"],
        mlp=stored.get("mlp", base),
        experts=stored.get("experts", base),
        router=stored.get("router", base),
        embedding=stored["embedding"],
        head=stored.get("head", stored["embedding"]),  # a tied head is the embedding
        activations=next(iter(activations), base),
        kv=stated.kv or base,
    )
    return precision, any(not form.group for forms in held.values() for form in forms if form != base)


def _matched(stated: Stated, model: Model, place: Place) -> Iterator[tuple[Module, Rule | None]]:
    modules = list(modules_of(model, representative_experts(stated.lists, most_experts(model))))
    patterns = sum(len(names.patterns) for names in stated.lists)
    if len(modules) * patterns > MOST_MATCHES:
        raise place.unmodelled(f"{patterns:,} patterns over {len(modules):,} modules")
    return ((module, stated.rule_for(module)) for module in modules)


def _several(weights: str, forms: Mapping[NumberFormat, _Held], place: Place) -> UserError:
    """Return the error that modules of a class are of several formats; blamed is what the fewest of them are by."""
    form, fewest = min(forms.items(), key=lambda item: item[1].count)
    total = sum(held.count for held in forms.values())
    blamed = fewest.place or next((held.place for held in forms.values() if held.place is not None), place)
    return UserError(
        f"{place.where}: key '{blamed.path}': found {fewest.count:,} of {total:,} {weights} modules in {form.name}, "
        f"{fewest.first.names[0]!r} the first, against all or none (--dtype says what each class is in, once the "
        "key is removed)"
    )
