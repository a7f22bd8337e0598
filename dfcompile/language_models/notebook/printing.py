"""What the notebook prints, character by character: tables of pandas, wrapped at 80 columns."""

from collections.abc import Collection, Mapping, Sequence

from dfcompile.language_models.notebook import counting
from dfcompile.language_models.notebook.counting import NotebookMachine, NotebookModel

_WIDTH = 80
_SUFFIXES = (("P", 1024**5), ("T", 1024**4), ("G", 1024**3), ("M", 1024**2))
# What the columns of the notebook's tables show: of a kernel, and of what is estimated of it.
_KERNEL = {
    "type": "kind", "name": "name", "m": "m", "k": "k", "n": "n", "batch_size": "batch", "grouped_q": "grouped",
    "compute": "compute", "weight": "weight", "kv_cache": "kv_cache",
}  # fmt: skip
_ESTIMATE = {
    "best_tiler": "tile", "exec_cycle": "cycles", "cmp_cycle": "compute_cycles", "mem_cycle": "memory_cycles",
    "mem_cycle_to_cmp_cycle": "ratio", "bound": "bound",
}  # fmt: skip
_FLOATS = ("compute", "weight", "kv_cache", "exec_cycle", "cmp_cycle", "mem_cycle", "mem_cycle_to_cmp_cycle")


def frame_text(columns: Mapping[str, Sequence[object]], floats: Collection[str] = _FLOATS) -> str:
    """Return a table with row numbers; columns that do not fit stand below.

    Args:
        columns: cells by heading.
        floats: headings of columns of floats, where none is NaN; the others are of texts and whole numbers.
    """
    import pandas as pd  # which takes half a second

    made = {name: pd.Series(cells, dtype=float if name in floats else object) for name, cells in columns.items()}
    text: str = pd.DataFrame(made).to_string(line_width=_WIDTH)
    return text


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
    import pandas as pd

    values = {
        "Num_Cores": machine.cores,
        "Frequency": machine.frequency,
        "MACs_per_cycle": machine.macs_per_cycle,
        "Bandwidth": machine.bandwidth,
        "L3_cache_capacity": machine.cache,
        "MACs_per_second": machine.macs_per_second,
    }
    return [
        f"Selected architecture: {machine.name}",
        pd.Series(values, name=machine.name, dtype=float).to_string(name=True, dtype=True),
        f"MACs_per_second: {machine.macs_per_second}",
    ]


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
    sizes = counting.chunk_sizes(length, answer, chunk)
    decoded, filled = sizes.decode_context, sizes.prompt_context
    contexts = {"Prefill context length": filled, "Decode context length": decoded}
    lines = [*machine_lines(machine), f"Input length: {length}"]
    estimates: list[counting.Estimate] = []
    for word, said, kernels in (
        ("Prefill", {"Context length": length}, counting.prefill(model, length, 1)),
        ("Decode", {"Context length": decoded}, counting.decode(model, decoded, batch)),
        ("Chunked", contexts, counting.chunked(model, sizes)),
    ):
        estimates = [counting.estimate(kernel, machine) for kernel in kernels]
        compute = sum(kernel.compute or 0 for kernel in kernels)
        weight = sum(kernel.weight or 0 for kernel in kernels)
        kv_cache = sum(kernel.kv_cache or 0 for kernel in kernels)
        columns = _columns(kernels, _KERNEL)
        lines += [
            f"{word} Compute {float(compute)}",
            f"{word} Weights {float(weight)}",
            f"{word} KV cache {float(kv_cache)}",
            frame_text(columns),
            "",
            "   Details:",
            "   === Input parameters ===",
            *(f"   {name}: {tokens}" for name, tokens in said.items()),
            f"   Bytes per FP value: {counting.BYTES_PER_VALUE}",
            f"   Layers: {model.layers}",
            f"   Total Compute (MACs): {short_number(float(compute * model.layers))}",
            f"   Total Weights Footprint (Bytes): {short_number(float(weight * model.layers))}",
            f"   Total KV Cache Footprint (Bytes): {short_number(float(kv_cache * model.layers))}",
            frame_text(columns | _columns(estimates, _ESTIMATE)),
        ]
    for word in ("Compute", "Memory"):
        cycles = sum(found.cycles or 0 for found in estimates if found.bound == word)
        lines.append(f"Total {word.lower()}-bound cycles: {cycles:.0f}")
    return "\n".join(lines) + "\n"


def _columns(rows: Sequence[object], shown: Mapping[str, str]) -> dict[str, list[object]]:
    return {heading: [getattr(row, name) for row in rows] for heading, name in shown.items()}
