"""The options of ``dfcompile llm``."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.options import shared
from dfcompile.options.numbers import real, within
from dfcompile.options.option import Group, option, table
from dfcompile.options.readers import file_or_name, joined_counts
from dfcompile.records import replace

_KERNELS = "See [kernels](#kernels-of-a-step)."


@table
class LanguageOptions:
    """A study of a language model."""

    config: str = option(
        "A config.json, a folder that has one, a shipped name, or a model OWNER/NAME in the hub's cache on this "
        "machine.",
        more="Found by `HF_HOME`, or its folder `models--owner--name`; the main revision, else the newest. Families: "
        "Llama 2 to 4, Mistral, Mixtral, Qwen 2 and 3, DeepSeek V3 and R1, Kimi K2, Gemma 2 and 3, GPT-2, gpt-oss; "
        "another one is refused by name. What a file leaves out is what its class takes, and listed under the "
        "assumptions.",
        read=file_or_name,
        default="llama-3.1-8b",
        metavar="FILE|FOLDER|NAME",
        complete="configuration",
        group=Group.FIRST,
    )
    allow_download: bool = option(
        "Fetch a model's config.json, and nothing else, if it is not on this machine.",
        more="With `huggingface_hub`, if that is installed and `HF_HUB_OFFLINE` does not forbid it. Without this "
        "option nothing is ever downloaded.",
    )
    system: str = option(
        "A shipped device, a spreadsheet (.csv, .tsv, .xlsx, .json, .toml) or a system file.",
        more="Shipped are `NVL-AX`, `JGS`, `a100-sxm`, `a100-sxm-40`, `h100-sxm`, `h200-sxm`; see "
        "[spreadsheets](#spreadsheets-of-devices) and [system files](system-files.md). A system file has one rate: "
        "`--multiplies` says of which formats.",
        read=file_or_name,
        default="NVL-AX",
        metavar="NAME|FILE[:NAME]",
        complete="device",
        group=Group.FIRST,
    )
    prefill: tuple[str, ...] = option(
        "Prompts, each option a step.",
        more="Of mixed lengths if several are listed; `@PAST` tokens are in the cache before.",
        default=(),
        metavar="TOKENS[@PAST][xBATCH][,…]",
        group=Group.FIRST,
    )
    decode: tuple[str, ...] = option(
        "One more token of each sequence, which is part of its context.",
        default=(),
        metavar="CONTEXT[xBATCH][,…]",
        group=Group.FIRST,
    )
    chunked: tuple[str, ...] = option(
        "A piece of a prompt and decodes in one step.",
        more="`PROMPT:ANSWER:CHUNK` derives the mean step of chunks of that size, and times every chunk of a prompt, "
        "with the decodes beside it; their sum is the time to the first token.",
        default=(),
        metavar="NEW@PAST+CONTEXTxBATCH|PROMPT:ANSWER:CHUNK",
        group=Group.COUNTING,
    )
    chips: str = option("Chips that may be used.", read=joined_counts, default="1", metavar="N[,N…]", group=Group.FIRST)
    degrees: str | None = option(
        "Degrees of parallelism; else all are tried.", metavar="tp=N,sp=N,dp=N,pp=N,ep=N,mb=N", group=Group.MACHINE
    )
    aim: str = option(
        "What the search makes small: the step's time, chips times time, or energy.",
        choices=("time", "cost", "energy"),
        group=Group.MACHINE,
    )
    time: str | None = option(
        "By which the tables count; roofline, or calibrated with --efficiency.",
        more="All that are known are beside each other in *steps*.",
        choices=("bound", "roofline", "tiling", "calibrated"),
        group=Group.COUNTING,
    )
    efficiency: str = option(
        "Fitted efficiencies.",
        more="See [times](#times).",
        read=file_or_name,
        default="",
        metavar="a100|h100|FILE",
        group=Group.COUNTING,
    )
    dtype: str = option(
        "Number formats instead of the configuration's.",
        default="",
        metavar="FORMAT|w=FORMAT,a=FORMAT,kv=FORMAT,…",
        group=Group.COUNTING,
    )
    multiplies: str = option(
        "What the one rate of a system file is of.", default="bf16,fp16", metavar="FORMAT[,…]", group=Group.COUNTING
    )
    attention: str = option(
        "Whether tokens see none after them.", more=_KERNELS, choices=("causal", "full"), group=Group.COUNTING
    )
    scores: str = option(
        "Where scores of attention stay; in memory, softmax is a kernel.",
        more=_KERNELS,
        choices=("chip", "memory"),
        group=Group.COUNTING,
    )
    fusion: str = option(
        "Which activations do not reach memory.",
        more=_KERNELS,
        choices=("none", "elementwise", "full"),
        group=Group.COUNTING,
    )
    latent: str = option(
        "How latent attention multiplies.", more=_KERNELS, choices=("auto", "naive", "absorbed"), group=Group.COUNTING
    )
    head: str = option(
        "For which tokens of a prompt there are logits.", more=_KERNELS, choices=("last", "all"), group=Group.COUNTING
    )
    overlap: str = option(
        "Whether kernels follow each other, or all overlap: a bound.", choices=("kernel", "full"), group=Group.COUNTING
    )
    transfers: str = option(
        "Whether caches move beside kernels, as far as the memory has time.",
        more="See [transfers](#transfers-of-the-cache).",
        default="async",
        choices=("sync", "async", "prefetch"),
        group=Group.MACHINE,
    )
    offload: str = option(
        "Caches in a memory beside the chip's own: as much as does not fit, or a share.",
        more="See [caches beside the chip](#caches-beside-the-chip).",
        default="none",
        metavar="none|auto|SHARE",
        group=Group.MACHINE,
    )
    kv_block: int = option(
        "Tokens of a block of the cache.", read=within(1, 2**20), default=1, metavar="TOKENS", group=Group.MACHINE
    )
    shared_prefix: int = option(
        "Tokens at the beginning that all sequences share.",
        read=within(0, 2**40),
        default=0,
        metavar="TOKENS",
        group=Group.MACHINE,
    )
    expert_histogram: Path | None = option("How often each expert was chosen: numbers.", group=Group.COUNTING)
    allow_oversubscribed: bool = option("Let pass what memory does not hold.", group=Group.MACHINE)
    usd_per_chip_hour: float = option(
        "For cost per million tokens.", read=real(0, 10**6), default=0.0, metavar="USD", group=Group.MACHINE
    )
    sweep: str | None = option(
        "What a change would bring.",
        more="One row per value.",
        metavar="batch|chips|dtype|context=V[,V…]",
        group=Group.COUNTING,
    )
    map: bool = option(
        "Also fuse a layer of each kind, and shard it over up to --chips chips.",
        more="See [layers as dataflow graphs](#layers-as-dataflow-graphs).",
        group=Group.COUNTING,
    )
    from_graph: bool = option(
        "Hold one step against the graph that transformers runs (needs it and torch).",
        more="See [below](#from-the-real-graph).",
        group=Group.COUNTING,
    )
    from_onnx: Path | None = option("The same against the graph in an ONNX file.", group=Group.COUNTING)
    dims: Mapping[str, int] = replace(
        shared.DIMS, help="Size of a symbolic dimension of that file.", group=Group.COUNTING
    )
    compat: str | None = option(
        "What the notebook prints, mistakes included.",
        more="See [the notebook](#the-notebook).",
        choices=("notebook",),
        group=Group.COUNTING,
    )


@table
class LanguageOutputs(shared.RowOutputs):
    """Where a study is written, and how."""

    format: str = option(
        "Of the report.",
        more="JSON has exact integers of any size; CSV a row per kernel, or per row of the sweep.",
        choices=shared.ROW_FORMATS,
        group=Group.OUTPUT,
    )
