"""Which classes of a model's matrices a quantised checkpoint leaves as they are: lists of modules, globs, patterns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from dfcompile.errors import UserError

# Modules of a layer by class, as checkpoints of the transformers library call them; of each model some are there.
MODULES: Mapping[str, tuple[str, ...]] = {
    "attention": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.0.up_proj", "mlp.experts.0.down_proj"),
}
_REGULAR = "re:"


def kept_classes(listed: Sequence[str], layers: int, key: str, where: str) -> frozenset[str]:
    """Return the classes whose modules are all among those that a list names.

    Args:
        listed: modules, parts of their names, globs, or ``re:`` and a regular expression.
        layers: of the model.
        key: of the list.
        where: the configuration's file.

    Raises:
        UserError: a class is kept in some layers or modules alone, which is not modelled; a pattern is broken.
    """
    kept = set()
    for name, modules in MODULES.items():
        of_layers = [f"model.layers.{layer}.{module}" for layer in range(layers) for module in modules]
        count = sum(is_listed(module, listed, where) for module in of_layers)
        if 0 < count < len(of_layers):
            raise UserError(
                f"{where}: key 'quantization_config.{key}': found {count} of {len(of_layers)} {name} modules against "
                "all or none (--dtype says what each class is in)"
            )
        if count:
            kept.add(name)
    return frozenset(kept)


def is_listed(module: str, listed: Iterable[str], where: str) -> bool:
    """Return whether an entry of a list is about a module.

    Raises:
        UserError: an entry is a broken regular expression.
    """
    return any(_names(entry, module, where) for entry in listed)


def _names(entry: str, module: str, where: str) -> bool:
    if entry.startswith(_REGULAR):
        try:
            return re.match(entry.removeprefix(_REGULAR), module) is not None
        except re.error as error:
            raise UserError(f"{where}: key 'quantization_config': found the pattern {entry!r}, {error}") from error
    if "*" in entry:
        return fnmatchcase(module, entry) or fnmatchcase(module, f"{entry}.*")
    return f".{entry}." in f".{module}."
