"""What a configuration says of the modules of a model, whatever its method: their names, lists of them, and rules [hf].

Lists have names or parts of them, globs, and regular expressions.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.model import Experts, LatentAttention, Layer, Model
from dfcompile.language_models.quantisation.keys import Keys, Place

LINEAR, ROUTER, EMBEDDING = "Linear", "Router", "Embedding"
_GATED = ("gate_proj", "up_proj", "down_proj")


class Module(Struct, frozen=True):
    """A module with one matrix.

    Attributes:
        names: that files give it; a model inside a larger one has a longer one.
        kind: of module.
        weights: class of the matrix, as `--dtype` has it.
        layer: that it belongs to; -1 where it belongs to none.
    """

    names: tuple[str, ...]
    kind: str
    weights: str
    layer: int = -1


def _below(stem: str, names: Sequence[str] = _GATED) -> tuple[str, ...]:
    return tuple(f"{stem}.{name}" for name in names)


def _either(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}|{other}" for name, other in zip(names, others, strict=True))


class _Naming(Struct, frozen=True):
    """How a family names its modules, after the number of the layer.

    Attributes:
        attention: the products around attention.
        mlp: of a dense layer.
        experts: of an expert, whose number stands for ``{}``; further names of the same after ``|``.
        shared: the shared experts.
        router: that chooses experts.
        layers: what all of them stand in.
    """

    attention: tuple[str, ...] = _below("self_attn", ("q_proj", "k_proj", "v_proj", "o_proj"))
    mlp: tuple[str, ...] = _below("mlp")
    experts: tuple[str, ...] = _below("mlp.experts.{}")
    shared: tuple[str, ...] = _below("mlp.shared_experts")
    router: str = "mlp.gate"
    layers: str = "model.layers"


_FUSED = ("gate_up_proj", "gate_up_proj", "down_proj")  # where all experts of a layer are one module
_GPT2 = _Naming(("attn.c_attn", "attn.c_proj"), ("mlp.c_fc", "mlp.c_proj"), layers="transformer.h")
_NAMINGS: Mapping[str, _Naming] = {
    "gpt-sw3": _GPT2,
    "gpt2": _GPT2,
    "gpt_oss": _Naming(experts=_either(_below("mlp.experts.{}"), _below("mlp.experts", _FUSED)), router="mlp.router"),
    "llama4_text": _Naming(
        mlp=_below("feed_forward"),
        experts=_either(_below("feed_forward.experts.{}"), _below("feed_forward.experts", _FUSED)),
        shared=_below("feed_forward.shared_expert"),
        router="feed_forward.router",
    ),
    "mixtral": _Naming(
        experts=_either(_below("block_sparse_moe.experts.{}", ("w1", "w3", "w2")), _below("mlp.experts.{}")),
        router="block_sparse_moe.gate|mlp.gate",
    ),
}
# Families whose modules have other names than these.
_OTHERWISE = frozenset(
    (
        "afmoe", "aria_text", "bailing_hybrid", "bamba", "biogpt", "bloom", "codegen", "ctrl", "dbrx", "exaone",
        "falcon", "falcon_h1", "falcon_mamba", "glm", "glm4", "glm4v_text", "glm_ocr_text", "gpt_bigcode",
        "gpt_neo", "gpt_neox", "gptj", "granitemoe", "granitemoe_swa", "granitemoehybrid", "granitemoeshared",
        "hunyuan_v1_moe", "jamba", "kimi_linear", "lara_mini", "lfm2", "lfm2_moe", "lfm3", "mamba", "mamba2",
        "minimax", "mpt", "nanochat", "nemotron_h", "olmo_hybrid", "openai-gpt", "opt", "persimmon", "phi",
        "phi3", "phi4_multimodal", "phimoe", "qwen2_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next",
        "recurrent_gemma", "starcoder2", "xglm",
    )
)  # fmt: skip
_LATENT = ("self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj", "self_attn.o_proj")

_INDEXER = ("self_attn.indexer.wq_b", "self_attn.indexer.wk")


def modules_of(model: Model, experts: Iterable[int]) -> Iterator[Module]:
    """Yield all modules with matrices: of layers, the embedding, and the head if it is not the embedding.

    Args:
        model: whose.
        experts: of each layer that are yielded.

    Raises:
        UserError: how the family names its modules is not known.
    """
    if model.model_type in _OTHERWISE or model.encoder_tokens:
        found = f"{model.model_type!r}, whose modules are not known by name"
        raise UserError(f"{model.name}: quantised weights: found {found} (--dtype says the formats)")
    naming = _NAMINGS.get(model.model_type, _Naming())
    listed = sorted(experts)
    for number, layer in enumerate(model.layers):
        for tails, kind, weights in _of_layer(layer, naming, listed):
            stems = [f"{naming.layers}.{number}.{tail}" for tail in tails.split("|")]
            yield Module(_within(stems), kind, weights, number)
    root = naming.layers.partition(".")[0]
    yield Module(_within([f"{root}.{'wte' if root == 'transformer' else 'embed_tokens'}"]), EMBEDDING, "embedding")
    if not model.tied:
        yield Module(("lm_head", "language_model.lm_head"), LINEAR, "head")


def _of_layer(layer: Layer, naming: _Naming, experts: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    """Yield names without the layer, kind and class of the modules of a layer."""
    attention = naming.attention
    if isinstance(layer.attention, LatentAttention):
        asked = ("self_attn.q_a_proj", "self_attn.q_b_proj") if layer.attention.q_rank else ("self_attn.q_proj",)
        attention = (*asked, *_LATENT, *(() if layer.attention.indexer is None else _INDEXER))
    yield from ((tail, LINEAR, "attention") for tail in attention)
    if not isinstance(layer.mlp, Experts):
        yield from ((tail, LINEAR, "mlp") for tail in naming.mlp)
        return
    yield naming.router, ROUTER, "router"
    for expert in (str(expert) for expert in experts if expert < layer.mlp.count):
        yield from ((tail.replace("{}", expert), LINEAR, "experts") for tail in naming.experts)
    if layer.mlp.shared_width:
        yield from ((tail, LINEAR, "mlp") for tail in naming.shared)


def _within(stems: Sequence[str]) -> tuple[str, ...]:
    """Return names of modules, and those that they have where the model is part of one that sees or hears as well."""
    wrapped: list[str] = []
    for stem in stems:
        if stem.startswith("model."):
            wrapped += (f"model.language_model.{stem.removeprefix('model.')}", f"language_model.{stem}")
        else:
            wrapped.append(stem.removeprefix("transformer."))
    return (*stems, *wrapped)


HEAD = "lm_head"
_REGULAR = "re:"
_OF_REGULAR = re.compile(r"[\\^$|()\[\]{}+]")  # what is in no name and no glob
# Of expressions that treat experts of different numbers alike: no digits, and nothing that matches one by itself.
_BLIND = re.compile(r"(?:\.\*|\\\.|(?<=[A-Za-z_])\.(?=[A-Za-z_])|[A-Za-z_|()?:^$-])*")
_OF_LAYERS = re.compile(r"layers\\?\.(?:\d+|(?:\\d|\[0-9\])\+?)")  # a number that is none of an expert
_REPEATED = re.compile(r"(?<!\\)[*+]|(?<!\\)\{")
_NESTED = re.compile(r"(?<!\\)\)(?:[*+]|\{)")
MOST_REPEATS = 6  # of an expression: matching takes the length of a name to that power


class Names(Struct, frozen=True):
    """A list of modules.

    Attributes:
        place: of the list.
        words: names, and parts of names between dots.
        patterns: that a name has to begin with.
        tells_experts_apart: whether a pattern may be about some experts alone.
    """

    place: Place
    words: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    tells_experts_apart: bool = False

    def has(self, module: Module) -> bool:
        """Return whether an entry is about a module, or about a module that it is part of."""
        if module.kind in self.words:
            return True
        return any(
            (self.words and not self.words.isdisjoint(_parts(name)))
            or any(pattern.match(name) is not None for pattern in self.patterns)
            for name in module.names
        )


def representative_experts(lists: Sequence[Names], count: int) -> frozenset[int]:
    """Return experts of a layer among which there is one of every kind that the lists tell apart."""
    if any(names.tells_experts_apart for names in lists):
        return frozenset(range(count))
    parts = {part for names in lists for word in names.words for part in word.split(".")}
    named = {int(part) for part in parts if part.isdecimal() and len(part) < 9}
    other = next(number for number in range(len(named) + 1) if number not in named)
    return frozenset(number for number in (*named, other) if number < count)


def names_of(entries: Iterable[str], place: Place, *, whole: bool = False) -> Names:
    """Return a list of modules.

    Args:
        entries: names or parts of them between dots, globs, or ``re:`` and a regular expression.
        place: of the list.
        whole: whether an expression has to match the whole name, not only how it begins.

    Raises:
        UserError: an expression is broken, or may take too long to match.
    """
    words, patterns, apart = set(), [], False
    for entry in entries:
        text = entry.removeprefix(_REGULAR)
        if entry.startswith(_REGULAR) or _OF_REGULAR.search(entry):
            patterns.append(_compiled(rf"(?:{text})\Z" if whole else text, entry, place))
            apart = apart or _BLIND.fullmatch(_OF_LAYERS.sub("layers", text)) is None
        elif "*" in (stem := entry.removesuffix(".*")) or "?" in stem:
            shape = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in re.sub(r"\*+", "*", stem))
            patterns.append(_compiled(rf"(?:.*\.)?{shape}(?:\..*)?\Z", entry, place, MOST_REPEATS + 2))
            apart = apart or "?" in stem or any(map(str.isdecimal, _OF_LAYERS.sub("layers", stem)))
        else:
            words.add(stem)
    return Names(place, frozenset(words), tuple(patterns), apart)


def _parts(name: str) -> list[str]:
    """Return a name's parts between dots, of any length."""
    parts = name.split(".")
    return [".".join(parts[first:end]) for first in range(len(parts)) for end in range(first + 1, len(parts) + 1)]


def _compiled(text: str, entry: str, place: Place, repeats: int = MOST_REPEATS) -> re.Pattern[str]:
    if _NESTED.search(text) or len(_REPEATED.findall(text)) > repeats:
        raise place.wrong(entry, f"a pattern of at most {MOST_REPEATS} repetitions, none inside of another")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(f"{place.where}: key '{place.path}': found the pattern {entry[:80]!r}: {error}") from error


class Rule(Struct, frozen=True):
    """What some modules are stored in, and what they are multiplied with.

    Attributes:
        place: of the rule.
        weights: format of the matrices; none: the configuration's dtype.
        activations: format of what is multiplied with them; none: the configuration's dtype.
        names: of the modules; none: all that are linear.
        classes: to which it is limited; empty: none.
    """

    place: Place
    weights: NumberFormat | None
    activations: NumberFormat | None = None
    names: Names | None = None
    classes: tuple[str, ...] = ()

    def holds_for(self, module: Module) -> bool:
        """Return whether the rule is about a module."""
        if self.classes and module.weights not in self.classes:
            return False
        return module.kind == LINEAR if self.names is None else self.names.has(module)


class Stated(Struct, frozen=True):
    """What a configuration says.

    Attributes:
        rules: the first one that is about a module holds; a module that none is about stays as it is.
        kept: modules that stay as they are, whatever rules say.
        kv: format of caches; none: as without quantisation.
        notes: what is assumed.
    """

    rules: tuple[Rule, ...]
    kept: Names
    kv: NumberFormat | None = None
    notes: tuple[str, ...] = ()

    def rule_for(self, module: Module) -> Rule | None:
        """Return the rule that holds for a module, if any."""
        if self.kept.has(module):
            return None
        return next((rule for rule in self.rules if rule.holds_for(module)), None)

    @property
    def lists(self) -> tuple[Names, ...]:
        """All lists of modules."""
        return (self.kept, *(rule.names for rule in self.rules if rule.names is not None))


class Method(Struct, frozen=True):
    """A method of quantisation.

    Attributes:
        name: its ``quant_method``.
        stated: reads a ``quantization_config`` of it, given the dtype of what is not quantised, and the place.
        other_names: that it has as well.
        marks: keys that older files without ``quant_method`` are known by.
    """

    name: str
    stated: Callable[[object, NumberFormat, Place], Stated]
    other_names: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


class MethodKeys(Keys, frozen=True, kw_only=True):
    """Keys of most methods.

    Attributes:
        modules_to_not_convert: modules that stay as they are.
    """

    harmless = "quant_method"
    modules_to_not_convert: tuple[str, ...] | None = None


def kept_names(keys: Keys, *lists: str, head: bool = False) -> Names:
    """Return the modules that stay as they are.

    Args:
        keys: with the lists.
        lists: keys of each list of them, which may be null.
        head: whether the head stays if there is no list.
    """
    listed = {key: entries for key in lists if (entries := getattr(keys, key)) is not None}
    entries = [entry for entries in listed.values() for entry in entries]
    if head and not listed:
        entries = [HEAD]
    return names_of(entries, keys.inside(next(iter(listed))) if listed else keys.place)
