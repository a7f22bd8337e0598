"""What the notebook prints, character by character: tables wrapped as pandas does it, floats of six digits."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.language_models.notebook import counting
from dfcompile.language_models.notebook.counting import NotebookMachine, NotebookModel

_WIDTH = 80
_DIGITS = 6
_LARGE = 1e6
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


class FrameColumn(Struct, frozen=True):
    """A column: of floats, where none is NaN, or of texts and whole numbers."""

    heading: str
    cells: Sequence[object]
    is_float: bool = False

    def lines(self) -> list[str]:
        """Heading and cells, to the right in the column's width."""
        if self.is_float:
            numbers = [float(cell) if isinstance(cell, int | float) else math.nan for cell in self.cells]
            texts = [f" {self.heading}", *(f" {text}" for text in float_texts(numbers))]
        else:
            texts = [self.heading, *(f" {cell}" for cell in self.cells)]
        width = max(map(len, texts))
        return [text.rjust(width) for text in texts]


def float_texts(numbers: Sequence[float]) -> list[str]:
    """Write a column of numbers: with an exponent if some are large and all six digits make them long.

    >>> float_texts([16777216.0, math.nan]), float_texts([2.061584e11])
    (['16777216.0', 'NaN'], ['2.061584e+11'])
    """
    fixed = [_shown(number, "f") for number in numbers]
    # Zeros that all decimals end with are taken off, but for the first one.
    kept = max((len(text.rstrip("0").partition(".")[2]) for text in fixed if text != "NaN"), default=1)
    cut = _DIGITS - max(kept, 1)
    fixed = [text if text == "NaN" or not cut else text[:-cut] for text in fixed]
    finite = [abs(number) for number in numbers if not math.isnan(number)]
    is_long = max(len(text) + 1 for text in fixed) > _DIGITS + 6  # a blank for the sign
    is_small = any(0 < number < 10.0**-_DIGITS for number in finite)
    if is_small or (is_long and any(number > _LARGE for number in finite)):
        return [_shown(number, "e") for number in numbers]
    return fixed


def _shown(number: float, form: str) -> str:
    return "NaN" if math.isnan(number) else f"{number:.{_DIGITS}{form}}"


def frame_text(columns: Sequence[FrameColumn]) -> str:
    """Return a table with row numbers; columns that do not fit stand below."""
    rows = len(columns[0].cells)
    index = ["", *map(str, range(rows))]
    size = max(map(len, index))
    index = [text.ljust(size) for text in index]
    made = [column.lines() for column in columns]
    parts, first, taken = [], 0, 0
    for number, width in enumerate(len(lines[0]) for lines in made):
        taken += width + 1
        mark = 1 if number == len(made) - 1 else 2
        if taken + mark > _WIDTH - size - 1 and number > 0:
            parts.append((first, number))
            first, taken = number, width + 1
    parts.append((first, len(made)))
    blocks = []
    for number, (start, end) in enumerate(parts):
        pieces = [index, *made[start:end]]
        if len(parts) > 1:
            pieces.append([" "] * (rows + 1) if number == len(parts) - 1 else [" \\", *["  "] * rows])
        blocks.append("\n".join(" ".join(line) for line in zip(*pieces, strict=True)))
    return "\n\n".join(blocks)


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
            frame_text([*columns, *_columns(estimates, _ESTIMATE)]),
        ]
    for word in ("Compute", "Memory"):
        cycles = sum(found.cycles or 0 for found in estimates if found.bound == word)
        lines.append(f"Total {word.lower()}-bound cycles: {cycles:.0f}")
    return "\n".join(lines) + "\n"


def _columns(rows: Sequence[object], shown: Mapping[str, str]) -> list[FrameColumn]:
    return [
        FrameColumn(heading, [getattr(row, name) for row in rows], is_float=heading in _FLOATS)
        for heading, name in shown.items()
    ]
