"""Reads a configuration: a file, a folder, a name that is shipped, or what the hub's cache on this machine holds.

Of models that see or hear as well: which part is the text model, and what else there is [hf].
"""

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.host.inputs import STANDARD_INPUT, parsed_json, readable_text
from dfcompile.language_models.configuration.families import FAMILIES
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.model import Model
from dfcompile.records import replace

NESTED = ("thinker_config", "text_config", "llm_config", "language_config")  # outer ones first
QUANTISED_BY = ("quantization_config", "compression_config")  # the second one is the older name
_SETTINGS = (*QUANTISED_BY, "generation_config")  # keys of this kind that are no models
_DTYPES = ("dtype", "torch_dtype")
# The text model of a type, where its configuration leaves that out, or has the text model's fields beside the others.
TEXT_TYPES: Mapping[str, str] = {
    **{
        name: f"{name}_text"
        for name in (
            "apertus1p5", "aria", "gemma3", "gemma3n", "gemma4", "gemma4_unified", "glm4v", "glm4v_moe", "glm_ocr",
            "granite4_vision", "granite_docling", "hunyuan_vl", "llama4", "paddleocr_vl", "qwen2_5_omni", "qwen2_5_vl",
            "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_omni_moe", "qwen3_vl", "qwen3_vl_moe",
        )
    },
    **dict.fromkeys(("aya_vision", "cohere2_vision"), "cohere2"),
    **dict.fromkeys(("glm46v", "glmga"), "glm4v_text"),
    **dict.fromkeys(("granite_speech", "granite_speech_plus"), "granite"),
    **dict.fromkeys(("idefics2", "mistral3"), "mistral"),
    **dict.fromkeys(
        (
            "deepseek_vl", "deepseek_vl_hybrid", "idefics3", "janus", "llava", "llava_next", "llava_next_video",
            "omniasr", "perception_lm", "smolvlm", "video_llava", "vipllava",
        ),
        "llama",
    ),
    **dict.fromkeys(("lighton_ocr", "qianfan_ocr", "qwen3_asr", "moss_transcribe_diarize"), "qwen3"),
    **dict.fromkeys(
        (
            "fast_vlm", "got_ocr2", "internvl", "llava_onevision", "ovis2", "pp_chart2table", "qwen2_audio",
            "vibevoice_asr", "video_llama_3",
        ),
        "qwen2",
    ),
    **dict.fromkeys(("blip-2", "instructblip", "instructblipvideo"), "opt"),
    "florence2": "bart",
    "fuyu": "persimmon",
    "hyperclovax_vision_v2": "hyperclovax",
    "kimi_k25": "deepseek_v3",
    "mllama": "mllama_text_model",
    "paligemma": "gemma",
    "phi4_multimodal": "phi4_multimodal",
    "qwen2_5_omni_thinker": "qwen2_5_omni_text",
    "qwen3_omni_moe_thinker": "qwen3_omni_moe_text",
    "shieldgemma2": "gemma3_text",
}  # fmt: skip


def text_part(document: Mapping[str, object]) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """Return the fields of the text model, and the keys of models beside it.

    What only an outer configuration says holds for the text model as well: whether the head is the embedding, how
    weights are quantised, and the number format.
    """
    fields, beside = document, list[str]()
    is_nested = document.get("model_type") in TEXT_TYPES
    if document.get("model_type") == "vision-encoder-decoder" and isinstance(decoder := document.get("decoder"), dict):
        return {**decoder, "encoder": document.get("encoder")}, ("encoder",)
    while True:
        name = next((key for key in NESTED if isinstance(fields.get(key), dict)), None)
        is_nested = is_nested or name is not None
        beside += (key for key in fields if key.endswith("_config") and key not in (name, *_SETTINGS))
        inner = fields.get(name) if name is not None else None
        if not isinstance(inner, dict):
            return fields, tuple(beside) if is_nested else ()
        shared = ("tie_word_embeddings", *QUANTISED_BY, *(() if any(key in inner for key in _DTYPES) else _DTYPES))
        outer = {key: fields[key] for key in shared if key in fields}
        fields = {**outer, **inner, "model_type": inner.get("model_type", fields.get("model_type"))}


FILE_NAME = "config.json"
_FOLDER = "models--"
_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)  # of a model on the hub
_REVISION = re.compile(r"\w{1,64}", re.ASCII)
_YES = ("1", "ON", "YES", "TRUE")
LARGEST_BYTES = 2**24
# Beside a config.json that says nothing of it: NVIDIA's file, and those of older tools.
QUANTISED_BESIDE = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")
_PACKAGE = "dfcompile.language_models.configuration"
_SHIPPED = f"{_PACKAGE}.shipped"
# What follows a model's name on the hub where it was trained further: its configuration is the same.
_TRAINED = r"(-(base|chat|hf|instruct|it|pt|v?[0-9.]+))*"
_SAME = {"deepseek-r1": "deepseek-v3"}  # trained otherwise, of one configuration


def cache_home() -> Path:
    """Return the folder of the hub's cache, as its own tools find it."""
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return Path(named) if named else Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"


def cached_in(folder: Path) -> Path | None:
    """Return the configuration in a model's folder of the cache: of its main revision, else of the newest snapshot."""
    main = folder / "refs" / "main"
    if main.is_file():
        revision = main.read_text(encoding="utf-8", errors="replace").strip()
        named = folder / "snapshots" / revision / FILE_NAME
        if _REVISION.fullmatch(revision) and named.is_file():
            return named
    files = (file for file in folder.glob(f"snapshots/*/{FILE_NAME}") if file.is_file())
    return max(files, key=lambda file: (file.stat().st_mtime, str(file)), default=None)


def downloaded(name: str) -> Path:
    """Download a model's configuration into the hub's cache.

    Raises:
        UserError: the network is forbidden (``HF_HUB_OFFLINE``), huggingface_hub is not installed, or the hub does not
            give the file, which may be because it has none, needs a licence accepted first, or cannot be reached.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in _YES:
        raise UserError(f"configuration {name!r}: --allow-download against HF_HUB_OFFLINE, which forbids it")
    where = f"configuration {name!r}"
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise UserError(f"{where}: --allow-download needs huggingface_hub (pip install huggingface_hub)") from error
    try:
        return Path(hf_hub_download(name, FILE_NAME, cache_dir=str(cache_home())))
    except (OSError, ValueError) as error:  # the package's own errors are some of these
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
        raise UserError(f"{where}: cannot be downloaded (put its {FILE_NAME} anywhere, name it): {reason}") from error


class Configuration(Struct, frozen=True):
    """The fields of a configuration, not yet understood.

    Attributes:
        name: in reports.
        where: names it in errors.
        values: of the fields, those of the text model if it is nested; a file of `QUANTISED_BESIDE` is a field of its
            name.
        towers: keys of the models beside the text model, such as ``vision_config``.
    """

    name: str
    where: str
    values: Mapping[str, object]
    towers: tuple[str, ...] = ()


def shipped_names() -> tuple[str, ...]:
    """Return the names of the configurations that come with dfcompile."""
    names = [file.name.removesuffix(".json") for file in files(_SHIPPED).iterdir() if file.name.endswith(".json")]
    return tuple(sorted([*names, *_SAME]))


def read_configuration(asked: str, *, may_download: bool = False) -> Configuration:
    """Find and read a configuration.

    In this order: a file (``-`` is standard input), a folder with a ``config.json`` or one of the hub's cache, a name
    that is shipped, and a model ``owner/name`` in the hub's cache under ``HF_HOME``. Only if it may, and if none of
    these is there, it is downloaded.

    Raises:
        UserError: there is none, it cannot be downloaded, or it is no JSON mapping.
    """
    path = Path(asked)
    if asked == STANDARD_INPUT or path.is_file():
        return _of_file(path, path.parent.name if path.name == FILE_NAME else path.stem, asked)
    if path.is_dir():
        snapshot = cached_in(path) if not (path / FILE_NAME).is_file() else None
        file = snapshot or path / FILE_NAME
        # The cache's folder ``models--owner--name`` is of ``owner/name``.
        named = path.name if snapshot is None else path.name.removeprefix(_FOLDER).replace("--", "/", 1)
        return _of_file(file, named, str(file))
    name = asked.lower()
    if name in shipped_names():
        shipped = files(_SHIPPED).joinpath(f"{_SAME.get(name, name)}.json")
        return _parsed(shipped.read_text(encoding="utf-8"), name, name)
    if _NAME.fullmatch(asked):
        folder = cache_home() / f"{_FOLDER}{asked.replace('/', '--')}"
        cached = cached_in(folder) or (downloaded(asked) if may_download else None)
        if cached is not None:
            return _of_file(cached, asked, str(cached))
        found = f"no such file or folder, and none in the hub's cache {str(cache_home())!r}"
        hint = "--allow-download fetches its config.json; else put it anywhere and give its path"
        raise UserError(f"configuration {asked!r}: {found} ({_shipped_like(asked)}{hint})")
    found = f"no such file, folder, shipped name or cached model{nearest(asked, shipped_names())}"
    raise UserError(f"configuration {asked!r}: {found}")


def _shipped_like(asked: str) -> str:
    """Return a hint at the shipped configuration that a model of the hub is of, by its name.

    >>> _shipped_like("meta-llama/Llama-3.1-8B-Instruct")
    "shipped is 'llama-3.1-8b'; "
    """
    name = asked.rpartition("/")[2].lower().removeprefix("meta-")
    alike = next((shipped for shipped in shipped_names() if re.fullmatch(re.escape(shipped) + _TRAINED, name)), None)
    return f"shipped is {alike!r}; " if alike else ""


def read_model(asked: str) -> Model:
    """Find a configuration and make a model of it.

    Raises:
        UserError: as `read_configuration` and `model_of`.
    """
    return model_of(read_configuration(asked))


def model_of(configuration: Configuration) -> Model:
    """Make a model of a configuration.

    Raises:
        UserError: an unknown family (with the nearest known one), a missing key without default, or one that is wrong.
    """
    where, values = configuration.where, configuration.values
    family = values.get("model_type")
    if not isinstance(family, str):
        found = "no key 'model_type'" if family is None else f"model_type {family!r}"
        raise UserError(f"{where}: found {found} against one of {', '.join(sorted(FAMILIES))}")
    family = TEXT_TYPES.get(family, family)
    if family not in FAMILIES:
        raise UserError(f"{where}: unknown architecture {family!r}{nearest(family, FAMILIES)}")
    return FAMILIES[family](Fields(values, class_defaults()[family], configuration.name, family, where))


@cache
def class_defaults() -> Mapping[str, Mapping[str, object]]:
    """Return what configuration classes take for fields that a file leaves out, by `model_type` [hf].

    Of transformers 5.23.0; only fields that parameters, caches or kernels depend on.
    """
    text = files(_PACKAGE).joinpath("class_defaults.json").read_text(encoding="utf-8")
    defaults: Mapping[str, Mapping[str, object]] = json.loads(text)
    return defaults


def _of_file(path: Path, name: str, where: str) -> Configuration:
    """Return a configuration with what the file beside a config.json says of its quantisation, if it says nothing."""
    found = _parsed(_text_of(path), name, where)
    if path.name == FILE_NAME and all(found.values.get(key) is None for key in QUANTISED_BY):
        for beside in QUANTISED_BESIDE:
            file = path.with_name(beside)
            if file.is_file():
                return replace(found, values={**found.values, beside: _document(_text_of(file), str(file))})
    return found


def _parsed(text: str, name: str, where: str) -> Configuration:
    document = _document(text, where)
    fields, towers = text_part(document)
    return Configuration(name, where, fields, towers)


def _document(text: str, where: str) -> dict[str, object]:
    try:
        document = parsed_json(text)
    except ValueError as error:
        raise UserError(f"{where}: not JSON: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise UserError(f"{where}: not a configuration: nested too deeply") from error
    if not isinstance(document, dict):
        raise UserError(f"{where}: found no keys against those of a configuration")
    return document


def _text_of(path: Path) -> str:
    return readable_text(path, f"configuration {str(path)!r}", LARGEST_BYTES)
