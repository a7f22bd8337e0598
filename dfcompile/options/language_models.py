"""The options of ``dfcompile llm``."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.options import shared
from dfcompile.options.numbers import real, within
from dfcompile.options.option import Group, counting, first, machine, option, output, table
from dfcompile.options.readers import file_or_name, joined_counts
from dfcompile.records import replace

_KERNELS = "See [kernels](llm-explained.md#kernels-of-a-step)."


@table
class LanguageOptions:
    """A study of a language model."""

    config: str = first(
        "The model: a config.json, its folder, a name that 'dfcompile configs' lists, or OWNER/NAME if it is in the "
        "hub's cache on this machine.",
        more="Found by `HF_HOME`, or its folder `models--owner--name`; the main revision, else the newest. Families: "
        "152 types of `transformers`, listed in [families](llm-explained.md#families); "
        "another one is refused by name. Where a file leaves something out, the default of its class counts and "
        "stands among the assumptions.",
        read=file_or_name,
        default="llama-3.1-8b",
        metavar="FILE|FOLDER|NAME",
        complete="configuration",
    )
    allow_download: bool = option(
        "Fetch the model's config.json, and nothing else, if it is not on this machine.",
        more="With `huggingface_hub`, if that is installed and `HF_HUB_OFFLINE` does not forbid it. Without this "
        "option nothing is ever downloaded.",
    )
    system: str = first(
        "The device: a name that 'dfcompile systems' lists, a system file, or a spreadsheet (.csv, .tsv, .xlsx, "
        ".json, .toml).",
        more="See [spreadsheets](#spreadsheets-of-devices) and [system files](system-files.md). A system file has one "
        "rate: `--multiplies` says for which number formats.",
        read=file_or_name,
        default="NVL-AX",
        metavar="NAME|FILE[:NAME]",
        complete="device",
    )
    prefill: tuple[str, ...] = first(
        "Process a prompt of so many tokens, for BATCH sequences. PAST tokens are in the cache already.",
        more="Each option is a step of its own; a list is one step with prompts of different lengths.",
        default=(),
        metavar="TOKENS[@PAST][xBATCH][,…]",
    )
    decode: tuple[str, ...] = first(
        "Generate one token for each of BATCH sequences, each CONTEXT tokens long with the new one.",
        default=(),
        metavar="CONTEXT[xBATCH][,…]",
    )
    chunked: tuple[str, ...] = counting(
        "Process a piece of a prompt and generate tokens of other sequences in one step.",
        more="`PROMPT:ANSWER:CHUNK` derives the mean step of chunks of that size, and times every chunk of a prompt, "
        "with the decodes beside it; their sum is the time to the first token.",
        default=(),
        metavar="NEW@PAST+CONTEXTxBATCH|PROMPT:ANSWER:CHUNK",
    )
    serve: str | None = first(
        "Instead of single steps: plan how so many users at once are served, with prompts and answers so long.",
        more="`64x1000:200*3,8000:100` has two lengths, three of four requests of the first. A table of plans: how the "
        "model is split, how prompts are read, and what users see; --shared-prefix is not read again. See "
        "[serving plans](llm-explained.md#serving-plans).",
        metavar="USERSxPROMPT:ANSWER[*WEIGHT][,…]",
    )
    ttft: str = machine("Most time to the first token, with --serve.", default="", metavar="TIME")
    tpot: str = machine("Most time per later token, with --serve.", default="", metavar="TIME")
    speculate: str | None = machine(
        "Draft so many tokens per step, each accepted at such a rate, with --serve; CONFIG drafts, or nothing that "
        "takes time.",
        metavar="LENGTH:RATE[:CONFIG]",
    )
    train: str | None = first(
        "Instead of single steps: plan a training step of so many sequences of so many tokens.",
        more="A table of plans: how the model is split, how long a step takes and on what, and what a chip holds. See "
        "[training](llm-explained.md#training).",
        metavar="BATCHxLENGTH",
    )
    recompute: str = machine(
        "What the backward pass computes again instead of keeping it, with --train: nothing, scores of attention, or "
        "whole layers.",
        choices=("none", "attention", "layers"),
    )
    dropout: bool = machine("Count dropout of scores and of both branches of a layer, with --train.")
    split_norms: bool = machine(
        "Let chips of a tensor group share the tokens of norms and residuals (sequence parallelism), with --train."
    )
    shard_optimiser: bool = machine("Let replicas share the states of the optimiser, with --train.")
    interleave: int = machine(
        "Runs of layers that each pipeline stage has, with --train.", read=within(1, 2**10), default=1, metavar="RUNS"
    )
    chips: str = first("Numbers of chips to try.", read=joined_counts, default="1", metavar="N[,N…]")
    degrees: str | None = machine(
        "How to split the work over chips: by tensor, sequence, data, pipeline and expert, and the number of "
        "micro-batches. Without, all are tried.",
        metavar="tp=N,sp=N,dp=N,pp=N,ep=N,mb=N",
    )
    aim: str = machine(
        "What to minimise when splitting: time of a step, chips x time, or energy.", choices=("time", "cost", "energy")
    )
    time: str | None = counting(
        "Which way of timing the tables show. Without, roofline, or calibrated with --efficiency.",
        more="The table *steps* has all of them side by side.",
        choices=("bound", "roofline", "tiling", "calibrated"),
    )
    efficiency: str = counting(
        "Efficiencies, fitted to measurements, to correct times by.",
        more="See [times](llm-explained.md#times).",
        read=file_or_name,
        default="",
        metavar="a100|h100|DEVICE-FRAMEWORK|FILE",
    )
    dtype: str = counting(
        "Number formats of weights (w), activations (a) and cache (kv), instead of the configuration's.",
        default="",
        metavar="FORMAT|w=FORMAT,a=FORMAT,kv=FORMAT,…",
    )
    multiplies: str = counting(
        "Number formats for which the one rate of a system file holds.", default="bf16,fp16", metavar="FORMAT[,…]"
    )
    attention: str = counting(
        "Whether a token sees only the tokens before it (causal), or all.", more=_KERNELS, choices=("causal", "full")
    )
    scores: str = counting(
        "Where attention scores stay. In memory, softmax is a kernel of its own.",
        more=_KERNELS,
        choices=("chip", "memory"),
    )
    fusion: str = counting(
        "Which kernels are fused, so that their activations do not go through memory.",
        more=_KERNELS,
        choices=("none", "elementwise", "full"),
    )
    latent: str = counting(
        "In which order latent attention multiplies.", more=_KERNELS, choices=("auto", "naive", "absorbed")
    )
    head: str = counting(
        "Compute logits for the last token of a prompt, or for all.", more=_KERNELS, choices=("last", "all")
    )
    overlap: str = counting(
        "Whether kernels run one after another, or memory and compute of all overlap (a lower bound).",
        choices=("kernel", "full"),
    )
    transfers: str = machine(
        "Whether caches are moved while kernels run, as far as the memory has time.",
        more="See [transfers](llm-explained.md#transfers-of-the-cache).",
        default="async",
        choices=("sync", "async", "prefetch"),
    )
    offload: str = machine(
        "Keep caches in a second memory beside the chip's own: what does not fit (auto), or a share.",
        more="See [caches beside the chip](llm-explained.md#caches-beside-the-chip).",
        default="none",
        metavar="none|auto|SHARE",
    )
    kv_block: int = machine(
        "Tokens in a block of the key-value cache.", read=within(1, 2**20), default=1, metavar="TOKENS"
    )
    shared_prefix: int = machine(
        "Tokens at the start that all sequences share.", read=within(0, 2**40), default=0, metavar="TOKENS"
    )
    encoder_tokens: int | None = counting(
        "Tokens of its encoder that each sequence attends to. Without, the most that the configuration says.",
        read=within(1, 2**40),
        metavar="TOKENS",
    )
    expert_histogram: Path | None = counting("File that says how often each expert is chosen, as numbers.")
    allow_oversubscribed: bool = machine("Go on even if the memory does not hold weights and caches.")
    usd_per_chip_hour: float = machine(
        "Price of a chip per hour, for the cost per million tokens.", read=real(0, 10**6), default=0.0, metavar="USD"
    )
    sweep: str | None = counting(
        "Repeat the study with other values of one setting.",
        more="One row per value.",
        metavar="batch|chips|dtype|context=V[,V…]",
    )
    map: bool = counting(
        "Also fuse a layer of each kind and split it over up to --chips chips.",
        more="See [layers as dataflow graphs](llm-explained.md#layers-as-dataflow-graphs).",
    )
    from_graph: bool = counting(
        "Check one step against the graph that transformers runs. Needs transformers and torch.",
        more="See [below](llm-explained.md#from-the-real-graph).",
    )
    from_onnx: Path | None = counting("Check one step against the graph in an ONNX file.")
    dims: Mapping[str, int] = replace(
        shared.DIMS, help="Size of a dimension that this ONNX file leaves open.", group=Group.COUNTING
    )


@table
class LanguageOutputs(shared.RowOutputs):
    """Where a study is written, and how."""

    format: str = output(
        "Format of the report.",
        more="JSON has exact integers of any size; CSV a row per kernel, or per row of the sweep.",
        choices=shared.ROW_FORMATS,
    )
