"""Measured operators of the wheel `aiconfigurator-core` (Apache-2.0) as rows of `benchmarks.llm_fit`.

Work and bytes of a row are those of the kernels that `dfcompile llm` makes of the same shape, so that a fit undoes what
these leave out. Tables are parquet files: pyarrow reads them (``pip install pyarrow``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision, uniform
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer, Mask, Model, Reach
from dfcompile.language_models.steps.attention_kernels import projection, vector_kernel
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Kernel, Latent, Role, StepChoices
from dfcompile.language_models.steps.step import WHOLE, expert_kernels, layer_kernels
from dfcompile.records import replace

Row = Mapping[str, object]
# Version of each framework whose tables are read: the newest one that has all kinds of operators.
VERSIONS = {
    "h100-sxm": {"trtllm": "1.3.0rc20", "vllm": "0.24.0", "sglang": "0.5.14"},
    "h200-sxm": {"trtllm": "1.3.0rc20", "vllm": "0.24.0", "sglang": "0.5.14"},
    "a100-sxm": {"trtllm": "1.0.0", "vllm": "0.14.0", "sglang": "0.5.10"},
    "b200-sxm": {"trtllm": "1.3.0rc20", "vllm": "0.24.0", "sglang": "0.5.14"},
}
# Where a table says nothing of a kernel in a captured graph, that of another framework. vLLM's products of scaled
# blocks take 60 to 90 us whatever their size, which is the time of launching them; SGLang's scaling of matrices is of
# blocks, which norms are not.
FROM = {("vllm", "gemm fp8_block"): "sglang", ("sglang", "vector"): "vllm"}
REDUCES = {"a100-sxm": {"sglang": "0.5.9"}}
MOST_ROWS = 3000  # of a class: evenly spaced ones of the file's order
LARGEST, SMALLEST = 32768, 256  # extents of matrices that models have
ROUTING = "power_law_1.01"  # of tokens to experts, as the tables call it
# Products in FP8 look for the scale of their activations, which checkpoints in FP8 state: both are classes.
DYNAMIC = "gemm fp8_dynamic"
# Experts in MXFP4 by Marlin were measured for one model with 896 of them alone: a fit takes those in INT4 as well,
# which the same kernel multiplies.
MARLIN, MARLIN_TOO = "experts mxfp4_marlin", "experts int4"
_BARE = "sglang_deepgemm_gemm_nt_f8f8bf16"  # multiplies what another kernel has scaled and made narrower
# An attention of latents that reads them in prompts as well, for which servers make keys and values: counted as keys
# and values it would have 0.18 of the peak rate, where TensorRT-LLM's has 0.57.
_ABSORBED = "flash_attention"
_FP8_BLOCK = NumberFormat("fp8", 8, group=128 * 128, scale_bits=32)
_FORMS = {
    "bfloat16": FORMATS["bf16"],
    "fp8": FORMATS["fp8"],
    "fp8_block": _FP8_BLOCK,
    "int4_wo": FORMATS["int4"],
    "w4a16_mxfp4": FORMATS["mxfp4"],
    "nvfp4": FORMATS["nvfp4"],
}


def number(row: Row, key: str) -> int:
    """Return a whole number of a row."""
    found = row[key]
    assert isinstance(found, int | float)
    return int(found)


def table(path: Path) -> list[Row]:
    """Return the rows of a parquet file; none where there is no such file."""
    import pyarrow.parquet as parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]

    rows: list[Row] = parquet.read_table(path).to_pylist() if path.is_file() else []
    return rows


Shape = tuple[str, Callable[[], Sequence[Kernel]]]  # class of an operator, and what makes its kernels


def shapes_of(model: Model) -> frozenset[tuple[str, int, int]]:
    """Return the shapes by which operators of a model are known, on up to 8 chips: products, heads and experts."""
    found: set[tuple[str, int, int]] = set()
    for kind in model.kinds:
        attention, mlp, hidden = kind.layer.attention, kind.layer.mlp, model.hidden
        heads = attention.heads if attention is not None else 0
        kv_heads = attention.kv_heads if isinstance(attention, Attention) else 0
        found |= {("heads", heads // chips, max(1, kv_heads // chips) if kv_heads else 0) for chips in (1, 2, 4, 8)}
        if isinstance(mlp, Experts):
            found.add(("experts", hidden, mlp.count))
        found |= {("gemm", hidden, 0)}
    return frozenset(found)


def _is_of(row: Row, shapes: frozenset[tuple[str, int, int]]) -> bool:
    """Whether an operator has the shape of a model that is left out."""
    if "gemm_dtype" in row:
        return ("gemm", number(row, "n"), 0) in shapes or ("gemm", number(row, "k"), 0) in shapes
    if "moe_dtype" in row:
        return ("experts", number(row, "hidden_size"), number(row, "num_experts")) in shapes
    if "num_heads" in row:
        kv_heads = number(row, "num_key_value_heads") if "num_key_value_heads" in row else 0
        return ("heads", number(row, "num_heads"), kv_heads) in shapes
    return False


def operator_rows(
    systems: Path, device: Device, framework: str, without: Model | None = None
) -> Iterator[dict[str, str]]:
    """Yield the rows of a device and a framework: all classes that were measured, maybe without a model's shapes."""
    left_out = shapes_of(without) if without is not None else frozenset()
    folder, version = systems / "data" / device.name.replace("-", "_"), VERSIONS[device.name][framework]
    for (asked, word), other in FROM.items():
        if asked == framework:
            yield from (row for row in _rows(folder, device, other, left_out) if row["work"] == word)
    yield from (row for row in _rows(folder, device, framework, left_out) if (framework, row["work"]) not in FROM)
    reduced = REDUCES.get(device.name, {}).get(framework, version)
    for row in table(folder / "comm" / framework / reduced / "custom_allreduce_perf.parquet"):
        if "eager" not in str(row["kernel_source"]):
            amount, taken = 2 * number(row, "message_size"), float(str(row["latency"])) * 1e3  # a size is in elements
            shown = {"bytes": str(amount), "microseconds": str(taken), "chips": str(row["num_gpus"])}
            yield {"work": "all_reduce", "flops": "", **shown}


def _rows(
    folder: Path, device: Device, framework: str, left_out: frozenset[tuple[str, int, int]]
) -> Iterator[dict[str, str]]:
    """Yield the rows of kernels, as many of each class at most, evenly spaced."""
    version = VERSIONS[device.name][framework]
    quantising = folder / "quantize" / framework / version
    scaled, finding = (
        {(row["m"], row["k"]): float(str(row["latency"])) for row in table(quantising / f"{name}_perf.parquet")}
        for name in ("scale_matrix", "computescale")
    )
    for kind, name, shaped in _KINDS:
        classes: dict[str, list[tuple[Row, Callable[[], Sequence[Kernel]]]]] = {}
        for row in table(folder / kind / framework / version / f"{name}_perf.parquet"):
            found = shaped(row)
            if found is not None and not _is_of(row, left_out):
                classes.setdefault(found[0], []).append((row, found[1]))
        if MARLIN in classes:
            classes[MARLIN] += classes.get(MARLIN_TOO, [])
        for word, rows in classes.items():
            for row, kernels in rows[:: max(1, len(rows) // MOST_ROWS)]:
                taken = float(str(row["latency"]))
                if row.get("kernel_source") == _BARE:
                    taken += scaled[row["m"], row["k"]]
                made = kernels()
                if made[0].rate not in device.macs_per_s:
                    continue
                if word == "gemm fp8":
                    yield _measured(DYNAMIC, made, taken, device)
                    taken -= finding.get((row["m"], row["k"]), 0.0)
                yield _measured(word, made, taken, device)


def _measured(word: str, kernels: Sequence[Kernel], milliseconds: float, device: Device) -> dict[str, str]:
    """Return a row of a class: what its kernels compute and move, and what others that were timed with them move."""
    of_class = [kernel for kernel in kernels if word.startswith(kernel.work.value)]
    beside = sum(kernel.bytes for kernel in kernels if kernel not in of_class)
    return {
        "work": word,
        "flops": str(2 * sum(kernel.macs for kernel in of_class)),
        "bytes": str(sum(kernel.bytes for kernel in of_class)),
        "microseconds": str(milliseconds * 1e3 - beside / device.bytes_per_s * 1e6),
        "inputs": str(sum(kernel.act_in_bytes for kernel in of_class if kernel.macs)),
        "products": str(sum(kernel.batch * kernel.distinct - 1 for kernel in of_class)),
        "launches": str(sum(kernel.launches for kernel in of_class)),
        "peak": str(2 * device.rate(of_class[0].rate)),
    }


def _formed(weights: NumberFormat, cache: NumberFormat = FORMATS["bf16"]) -> Precision:
    """Return a precision whose activations are as wide as weights, where these are multiplied as they are."""
    activations = {"fp8": FORMATS["fp8"], "nvfp4": weights}.get(weights.name, FORMATS["bf16"])
    return uniform(weights).having({"activations": activations, "kv": cache, "router": FORMATS["bf16"]})


def _gemm(row: Row) -> Shape | None:
    form, (m, n, k) = _FORMS.get(str(row["gemm_dtype"])), (number(row, key) for key in "mnk")
    if form is None or not (SMALLEST <= n <= LARGEST and SMALLEST <= k <= LARGEST and m <= LARGEST // 2):
        return None
    return f"gemm {form.stored_name}", lambda: [projection("gemm", m, k, n, _formed(form))]


def _attention(row: Row) -> Shape | None:
    """Return attention, decodes with one new token; heads are padded or grouped as they are."""
    if number(row, "head_dim") not in (64, 128):
        return None
    heads, kv_heads, dim = number(row, "num_heads"), number(row, "num_key_value_heads"), number(row, "head_dim")
    window = number(row, "window_size") if "window_size" in row else 0
    reach = Reach(Mask.WINDOW, window) if window else Reach()
    return _attended(row, Attention(heads, kv_heads, dim, dim, reach), "attn")


def _latent(row: Row) -> Shape | None:
    attention = LatentAttention(number(row, "num_heads"), 1536, 512, 64, 128, 128)
    return _attended(row, attention, "latent")


def _attended(row: Row, attention: Attention | LatentAttention, word: str) -> Shape | None:
    cache, is_decode = _FORMS[str(row["kv_cache_dtype"])], "generation" in str(row["op_name"])
    computed = str(row.get("attn_dtype", row.get("mla_dtype", "bfloat16")))
    if computed not in ("bfloat16", str(row["kv_cache_dtype"])):
        return None
    past, new = (number(row, "isl") + number(row, "step") - 1, 1) if is_decode else (0, number(row, "isl"))
    if number(row, "step") and not is_decode:
        past = number(row, "step")
    batch = Batch("measured", (Sequences(past, new, number(row, "batch_size")),))
    if batch.longest < 2:
        return None
    work = f"{word}_{'decode' if is_decode else 'context'}"
    precision = _formed(_FORMS[computed], cache)
    is_absorbed = isinstance(attention, LatentAttention) and row["kernel_source"] == _ABSORBED
    choices = StepChoices(latent=Latent.ABSORBED) if is_absorbed else StepChoices()

    def kernels() -> Sequence[Kernel]:
        layer = Layer(attention, DenseMlp(1))
        made = layer_kernels(layer, 1, batch, precision, choices, WHOLE)
        return [kernel for kernel in made if kernel.role is Role.ATTENTION]

    return f"{work} {cache.stored_name}", kernels


def _experts(row: Row) -> Shape | None:
    form, hidden = _FORMS.get(str(row["moe_dtype"])), number(row, "hidden_size")
    if form is None or row["distribution"] != ROUTING or row["moe_ep_size"] != 1 or number(row, "moe_tp_size") > 8:
        return None
    if any(word in str(row["kernel_source"]) for word in ("nongated", "min_latency")):
        return None
    word, width = f"experts {form.stored_name}", number(row, "inter_size") // number(row, "moe_tp_size")
    experts = Experts(number(row, "num_experts"), number(row, "topk"), width)
    tokens, precision = number(row, "num_tokens"), _formed(form)

    def kernels() -> Sequence[Kernel]:
        return list(expert_kernels(experts, hidden, tokens, precision, StepChoices(), WHOLE))[1:]

    return MARLIN if word == "experts mxfp4" and "marlin" in str(row["kernel_source"]) else word, kernels


def _elementwise(row: Row) -> Shape | None:
    """Return what reads matrices and writes them narrower: the one measured operator that only moves elements."""
    elements = number(row, "m") * number(row, "k")
    made = vector_kernel("scaled", (1, 1, elements), elements, 0, FORMATS["bf16"], elements)
    return "vector", lambda: [replace(made, act_out_bytes=elements)]


_KINDS: Sequence[tuple[str, str, Callable[[Row], Shape | None]]] = (
    ("gemm", "gemm", _gemm),
    ("attention", "context_attention", _attention),
    ("attention", "generation_attention", _attention),
    ("mla", "context_mla", _latent),
    ("mla", "generation_mla", _latent),
    ("moe", "moe", _experts),
    ("quantize", "scale_matrix", _elementwise),
)
