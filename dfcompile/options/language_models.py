"""The options of ``dfcompile llm``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfcompile.options import shared
from dfcompile.options.numbers import real, within
from dfcompile.options.option import option, table
from dfcompile.options.readers import joined, text, texts


def _one_of(said: str, *words: str, default: str | None = None, **more: Any) -> Any:
    """Return the option of one of a few words, the first of them by default."""
    return shared.word_option(said, words, default=default or words[0], **more)


def _texts(said: str, metavar: str, more: str = "") -> Any:
    return shared.list_option(texts, said, metavar, more=more)


def _text(said: str, metavar: str, default: str | None, more: str = "") -> Any:
    return option(text, said, more=more, default=default, metavar=metavar)


@table
class LanguageOptions:
    """A study of a language model."""

    config: str = _text(
        "A config.json, a folder that has one, a shipped name, or a model OWNER/NAME in the hub's cache on this "
        "machine.",
        "FILE|FOLDER|NAME",
        "llama-3.1-8b",
        "Found by `HF_HOME`, or its folder `models--owner--name`; the main revision, else the newest. Families: "
        "Llama 2 to 4, Mistral, Mixtral, Qwen 2 and 3, DeepSeek V3 and R1, Kimi K2, Gemma 2 and 3, GPT-2, gpt-oss; "
        "another one is refused by name. What a file leaves out is what its class takes, and listed under the "
        "assumptions.",
    )
    allow_download: bool = shared.flag_option(
        "Fetch a model's config.json, and nothing else, if it is not on this machine.",
        more="With `huggingface_hub`, if that is installed and `HF_HUB_OFFLINE` does not forbid it. Without this "
        "option nothing is ever downloaded.",
    )
    system: str = _text(
        "A shipped device, a spreadsheet (.csv, .tsv, .xlsx, .json, .toml) or a system file.",
        "NAME|FILE[:NAME]",
        "NVL-AX",
        "Shipped are `NVL-AX`, `JGS`, `a100-sxm`, `a100-sxm-40`, `h100-sxm`, `h200-sxm`; see "
        "[spreadsheets](#spreadsheets-of-devices) and [system files](system-files.md). A system file has one rate: "
        "`--multiplies` says of which formats.",
    )
    prefill: tuple[str, ...] = _texts(
        "Prompts, each option a step.",
        "TOKENS[@PAST][xBATCH][,…]",
        "Of mixed lengths if several are listed; `@PAST` tokens are in the cache before.",
    )
    decode: tuple[str, ...] = _texts(
        "One more token of each sequence, which is part of its context.", "CONTEXT[xBATCH][,…]"
    )
    chunked: tuple[str, ...] = _texts(
        "A piece of a prompt and decodes in one step.",
        "NEW@PAST+CONTEXTxBATCH|PROMPT:ANSWER:CHUNK",
        "`PROMPT:ANSWER:CHUNK` derives the mean step of chunks of that size, and times every chunk of a prompt, with "
        "the decodes beside it; their sum is the time to the first token.",
    )
    chips: str = option(joined, "Chips that may be used.", default="1", metavar="N[,N…]")
    degrees: str | None = _text("Degrees of parallelism; else all are tried.", "tp=N,sp=N,dp=N,pp=N,ep=N,mb=N", None)
    aim: str = _one_of(
        "What the search makes small: the step's time, chips times time, or energy.", "time", "cost", "energy"
    )
    time: str | None = shared.word_option(
        "By which the tables count; roofline, or calibrated with --efficiency.",
        ("bound", "roofline", "tiling", "calibrated"),
        more="All that are known are beside each other in *steps*.",
    )
    efficiency: str = _text("Fitted efficiencies.", "a100|h100|FILE", "", "See [times](#times).")
    dtype: str = _text("Number formats instead of the configuration's.", "FORMAT|w=FORMAT,a=FORMAT,kv=FORMAT,…", "")
    multiplies: str = _text("What the one rate of a system file is of.", "FORMAT[,…]", "bf16,fp16")
    attention: str = _one_of(
        "Whether tokens see none after them.", "causal", "full", more="See [kernels](#kernels-of-a-step)."
    )
    scores: str = _one_of(
        "Where scores of attention stay; in memory, softmax is a kernel.",
        "chip",
        "memory",
        more="See [kernels](#kernels-of-a-step).",
    )
    fusion: str = _one_of(
        "Which activations do not reach memory.",
        "none",
        "elementwise",
        "full",
        more="See [kernels](#kernels-of-a-step).",
    )
    latent: str = _one_of(
        "How latent attention multiplies.", "auto", "naive", "absorbed", more="See [kernels](#kernels-of-a-step)."
    )
    head: str = _one_of(
        "For which tokens of a prompt there are logits.", "last", "all", more="See [kernels](#kernels-of-a-step)."
    )
    overlap: str = _one_of("Whether kernels follow each other, or all overlap: a bound.", "kernel", "full")
    transfers: str = _one_of(
        "Whether caches move beside kernels, as far as the memory has time.",
        "sync", "async", "prefetch",
        default="async",
        more="See [transfers](#transfers-of-the-cache).",
    )  # fmt: skip
    offload: str = _text(
        "Caches in a memory beside the chip's own: as much as does not fit, or a share.",
        "none|auto|SHARE",
        "none",
        "See [caches beside the chip](#caches-beside-the-chip).",
    )
    kv_block: int = option(within(1, 2**20), "Tokens of a block of the cache.", default=1, metavar="TOKENS")
    shared_prefix: int = option(
        within(0, 2**40), "Tokens at the beginning that all sequences share.", default=0, metavar="TOKENS"
    )
    expert_histogram: Path | None = shared.file_option("How often each expert was chosen: numbers.")
    allow_oversubscribed: bool = shared.flag_option("Let pass what memory does not hold.")
    usd_per_chip_hour: float = option(real(0, 10**6), "For cost per million tokens.", default=0.0, metavar="USD")
    sweep: str | None = _text(
        "What a change would bring.", "batch|chips|dtype|context=V[,V…]", None, "One row per value."
    )
    map: bool = shared.flag_option(
        "Also fuse a layer of each kind, and shard it over up to --chips chips.",
        more="See [layers as dataflow graphs](#layers-as-dataflow-graphs).",
    )
    from_graph: bool = shared.flag_option(
        "Hold one step against the graph that transformers runs (needs it and torch).",
        more="See [below](#from-the-real-graph).",
    )
    from_onnx: Path | None = shared.file_option("The same against the graph in an ONNX file.")
    dims: Mapping[str, int] = shared.dims_option("Size of a symbolic dimension of that file.")
    compat: str | None = shared.word_option(
        "What the notebook prints, mistakes included.", ("notebook",), more="See [the notebook](#the-notebook)."
    )


@table
class LanguageOutputs:
    """Where a study is written, and how."""

    html: Path | None = shared.html_option()
    format: str = _one_of(
        "Of the report.",
        *shared.ROW_FORMATS,
        more="JSON has exact integers of any size; CSV a row per kernel, or per row of the sweep.",
    )
    verbose: bool = shared.verbose_option()
    output: Path | None = shared.output_option()
