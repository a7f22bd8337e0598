"""What the notebook prints, character by character."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.language_models.notebook.frame_text import FrameColumn, float_texts, frame_text
from dfcompile.language_models.notebook.kernels import (
    NotebookKernel,
    NotebookModel,
    chunk_sizes,
    chunked,
    decode,
    prefill,
)
from dfcompile.language_models.notebook.tiler import BYTES_PER_VALUE, Estimate, NotebookMachine, estimate

_SUFFIXES = (("P", 1024**5), ("T", 1024**4), ("G", 1024**3), ("M", 1024**2))


class NotebookRun(Struct, frozen=True):
    """One workload of the notebook: its word, its first lines of details and its kernels."""

    word: str
    context_lines: tuple[str, ...]
    kernels: tuple[NotebookKernel, ...]


def short_number(count: float) -> str:
    """Write a number with M, G, T or P for powers of 1024, bare below: the notebook's suffixes are binary.

    >>> short_number(74766790688768), short_number(2**20 - 1)
    ('68.0T', '1048575')
    """
    for suffix, size in _SUFFIXES:
        if count >= size:
            return f"{count / size:.1f}{suffix}"
    return str(count)


def machine_lines(machine: NotebookMachine) -> list[str]:
    """Return the block of the selected architecture."""
    values = {
        "Num_Cores": float(machine.cores),
        "Frequency": machine.frequency,
        "MACs_per_cycle": float(machine.macs_per_cycle),
        "Bandwidth": float(machine.bandwidth),
        "L3_cache_capacity": float(machine.cache),
        "MACs_per_second": machine.macs_per_second,
    }
    widest = max(map(len, values))
    shown = zip(values, float_texts(list(values.values())), strict=True)
    return [
        f"Selected architecture: {machine.name}",
        *(f"{name.ljust(widest)}    {text}" for name, text in shown),
        f"Name: {machine.name}, dtype: float64",
        f"MACs_per_second: {machine.macs_per_second}",
    ]


def notebook_runs(model: NotebookModel, length: int, answer: int, chunk: int, batch: int) -> tuple[NotebookRun, ...]:
    """Return the three workloads of the notebook's last cell."""
    sizes = chunk_sizes(length, answer, chunk)
    return (
        NotebookRun("Prefill", (f"   Context length: {length}",), prefill(model, length, 1)),
        NotebookRun(
            "Decode", (f"   Context length: {sizes.decode_context}",), decode(model, sizes.decode_context, batch)
        ),
        NotebookRun(
            "Chunked",
            (
                f"   Prefill context length: {sizes.prompt_context}",
                f"   Decode context length: {sizes.decode_context}",
            ),
            chunked(model, sizes),
        ),
    )


def notebook_text(
    model: NotebookModel,
    machine: NotebookMachine,
    length: int = 8192,
    answer: int = 512,
    chunk: int = 256,
    batch: int = 256,
) -> str:
    """Return the block of the architecture and all that the last cell prints.

    The last two lines are of the last workload and of one layer alone, as in the notebook.
    """
    lines = [*machine_lines(machine), f"Input length: {length}"]
    estimates: list[Estimate] = []
    for run in notebook_runs(model, length, answer, chunk, batch):
        estimates = [estimate(kernel, machine) for kernel in run.kernels]
        lines += _run_lines(run, model, estimates)
    for word in ("Compute", "Memory"):
        cycles = sum(found.cycles or 0 for found in estimates if found.bound == word)
        lines.append(f"Total {word.lower()}-bound cycles: {cycles:.0f}")
    return "\n".join(lines) + "\n"


def _run_lines(run: NotebookRun, model: NotebookModel, estimates: Sequence[Estimate]) -> list[str]:
    compute = sum(kernel.compute or 0 for kernel in run.kernels)
    weight = sum(kernel.weight or 0 for kernel in run.kernels)
    kv_cache = sum(kernel.kv_cache or 0 for kernel in run.kernels)
    columns = _columns(run.kernels)
    return [
        f"{run.word} Compute {float(compute)}",
        f"{run.word} Weights {float(weight)}",
        f"{run.word} KV cache {float(kv_cache)}",
        frame_text(columns),
        "",
        "   Details:",
        "   === Input parameters ===",
        *run.context_lines,
        f"   Bytes per FP value: {BYTES_PER_VALUE}",
        f"   Layers: {model.layers}",
        f"   Total Compute (MACs): {short_number(float(compute * model.layers))}",
        f"   Total Weights Footprint (Bytes): {short_number(float(weight * model.layers))}",
        f"   Total KV Cache Footprint (Bytes): {short_number(float(kv_cache * model.layers))}",
        frame_text([*columns, *_estimate_columns(estimates)]),
    ]


def _columns(kernels: Sequence[NotebookKernel]) -> list[FrameColumn]:
    return [
        FrameColumn("type", [kernel.kind for kernel in kernels]),
        FrameColumn("name", [kernel.name for kernel in kernels]),
        FrameColumn("m", [kernel.m for kernel in kernels]),
        FrameColumn("k", [kernel.k for kernel in kernels]),
        FrameColumn("n", [kernel.n for kernel in kernels]),
        FrameColumn("batch_size", [kernel.batch for kernel in kernels]),
        FrameColumn("grouped_q", [kernel.grouped for kernel in kernels]),
        FrameColumn("compute", [kernel.compute for kernel in kernels], is_float=True),
        FrameColumn("weight", [kernel.weight for kernel in kernels], is_float=True),
        FrameColumn("kv_cache", [kernel.kv_cache for kernel in kernels], is_float=True),
    ]


def _estimate_columns(estimates: Sequence[Estimate]) -> list[FrameColumn]:
    return [
        FrameColumn("best_tiler", [found.tile for found in estimates]),
        FrameColumn("exec_cycle", [found.cycles for found in estimates], is_float=True),
        FrameColumn("cmp_cycle", [found.compute_cycles for found in estimates], is_float=True),
        FrameColumn("mem_cycle", [found.memory_cycles for found in estimates], is_float=True),
        FrameColumn("mem_cycle_to_cmp_cycle", [found.ratio for found in estimates], is_float=True),
        FrameColumn("bound", [found.bound for found in estimates]),
    ]
