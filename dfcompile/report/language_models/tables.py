"""A study of a language model as tables for people: SI prefixes for work, binary ones for bytes."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from dfcompile.language_models.study import Study
from dfcompile.report.columns import Derived, table_columns
from dfcompile.report.language_models.figures import KernelFigures, PartFigures, StepFigures, figures_of
from dfcompile.report.plain_values import Json
from dfcompile.report.text_tables import Column, Table, binary, decimal, folded, listed, milliseconds, page

MOST_CHUNK_ROWS = 9

Counted = TypeVar("Counted", PartFigures, KernelFigures)


def study_table(
    study: Study, width: int, *, verbose: bool, sweep: Sequence[Mapping[str, Json]] = (), mapped: Sequence[str] = ()
) -> str:
    """Return a study as tables that are never wider than the page, with those of its mapping among them."""
    lines = [*(line for text in _model_lines(study) for line in folded(text, width, "  ")), ""]
    steps = figures_of(study)
    lines += _step_table(study, steps).lines(width)
    capacity = study.device.capacity_bytes
    held = (step.chip_weight_bytes + step.chip_kv_bytes for step in steps)
    shares = Column("memory\n%", tuple(f"{100 * size / capacity:.1f}" if capacity else "" for size in held))
    lines += Table("chips", (_names(steps),), (*table_columns("chips", steps), shares)).lines(width)
    for step in steps:
        if step.chunks:
            lines += _chunk_table(step).lines(width)
        names = Column("part", tuple(part.part for part in step.parts), is_text=True)
        columns = table_columns("parts", step.parts, (_share(step.parts, "time_s"),))
        lines += Table(f"{step.step}: layers of a chip", (names,), columns).lines(width)
        lines += kernel_table(f"{step.step}: kernels of a chip", step.kernels).lines(width)
    lines += mapped
    if sweep:
        lines += sweep_table(sweep).lines(width)
    lines += _answers(study)
    lines += listed("warnings", study.warnings, width)
    if verbose:
        lines += listed("assumptions", study.notes, width)
    else:
        lines.append(f"{len(study.notes)} assumptions: -v lists them")
    return page(lines)


def kernel_table(title: str, kernels: Sequence[KernelFigures]) -> Table:
    """Return kernels with their extents, bytes and times, and each one's share of the time of all."""
    names = Column("kernel", tuple(one.name for one in kernels), is_text=True)
    extents = Derived("m x k x n", _extents, after="count", is_text=True)
    columns = table_columns("kernels", kernels, (extents, _share(kernels, "bound")))
    return Table(title, (names,), columns)


def _model_lines(study: Study) -> list[str]:
    parameters, device = study.parameters, study.device
    active = ""
    if parameters.inactive:
        without = decimal(parameters.active_without_lookup)
        active = f", {decimal(parameters.active)} active ({without} without the input embedding)"
    memory = f"of {binary(device.capacity_bytes)}" if device.capacity_bytes else "of unknown capacity"
    held = f"weights {binary(study.weight_bytes)}, cache {study.kv_bytes_per_token:,} bytes per token"
    of_decoder = ""
    if study.state_bytes_per_sequence:
        held += f" and {binary(study.state_bytes_per_sequence)} per sequence"
    if study.encoder_kv_bytes:
        held += f" and {study.encoder_kv_bytes:,} per sequence of its encoder"
        of_decoder = " of the decoder"
    name = f"{study.model.name} ({study.model.model_type})"
    return [
        f"{name}: {decimal(parameters.total)} parameters{of_decoder}{active}, {len(study.model.layers)} layers",
        f"{held}, {study.precision.summary}",
        f"{device.name}: memory {memory} at {decimal(device.bytes_per_s)}B/s",
    ]


def _step_table(study: Study, steps: Sequence[StepFigures]) -> Table:
    ways = list(dict.fromkeys(way for step in study.steps for way in step.times))
    columns = []
    for way in ways:
        times = (step.times.get(way) for step in study.steps)
        cells = ("does not fit" if time is None else milliseconds(time) for time in times)
        columns.append(Column(f"{way.value}\nms", tuple(cells)))
    energy = (Derived("J/token", _energy, after="macs"),) if any(step.energy_j is not None for step in steps) else ()
    columns += table_columns("steps", steps, energy)
    return Table(f"steps, counted by {study.request.time.value}", (_names(steps),), tuple(columns))


def _energy(step: StepFigures) -> str:
    if step.energy_j_per_token is None:
        return ""
    return f"{step.energy_j_per_token:.4g}{' (throttled)' if step.is_throttled else ''}"


def _names(steps: Sequence[StepFigures]) -> Column:
    return Column("step", tuple(step.step for step in steps), is_text=True)


def _chunk_table(step: StepFigures) -> Table:
    """Return the steps that fill in a prompt: all, or some of them from the first to the last."""
    count = len(step.chunks)
    shown = list(dict.fromkeys(round(at * (count - 1) / (MOST_CHUNK_ROWS - 1)) for at in range(MOST_CHUNK_ROWS)))
    return Table(
        f"{step.step}: {'chunks' if len(shown) == count else 'some of the chunks'} of a prompt",
        (Column("chunk", tuple(f"{at + 1:,} of {count:,}" for at in shown)),),
        table_columns("chunks", [step.chunks[at] for at in shown]),
    )


def _share(rows: Sequence[Counted], after: str) -> Derived[Counted]:
    """Return the column of which part of the time of all rows each of them takes."""
    whole = sum(row.count * row.time_s for row in rows) or 1.0
    return Derived("share\n%", lambda row: f"{100 * row.count * row.time_s / whole:.1f}", after)


def _extents(kernel: KernelFigures) -> str:
    return f"{kernel.m}x{kernel.k}x{kernel.n}{f' x{kernel.batch}' if kernel.batch > 1 else ''}"


def _answers(study: Study) -> list[str]:
    """Return time to the first and per further token, where the steps are those."""
    first = next((step for step in study.steps if not any(group.decodes for group in step.batch.groups)), None)
    later = next((step for step in study.steps if step.batch.is_decode), None)
    lines = [
        f"time to first token in {len(step.chunk_s):,} chunks: {milliseconds(math.fsum(step.chunk_s))} ms, "
        f"{math.fsum(step.chunk_s) / len(step.chunk_s) * 1e3:,.4g} ms each in the mean ({study.request.time.value})"
        for step in study.steps
        if step.chunk_s
    ]
    if first is not None:
        lines.append(f"time to first token: {milliseconds(first.exec_s)} ms ({study.request.time.value})")
    if later is not None:
        how = "; ".join((study.request.time.value, *later.assumptions))
        lines.append(f"time per output token: {milliseconds(later.exec_s)} ms ({how})")
    return lines


_SWEPT = {
    "time_ms": "time\nms",
    "tokens_per_s": "tokens/s",
    "per_sequence": "per\nsequence",
    "held_bytes": "memory\nof a chip",
    "degrees": "degrees",
}


def sweep_table(rows: Sequence[Mapping[str, Json]]) -> Table:
    """Return what changes of one thing bring."""
    change = Column(str(rows[0]["change"]), tuple(str(row["value"]) for row in rows))
    step = Column("step", tuple(str(row["step"]) for row in rows), is_text=True)
    columns = tuple(
        Column(heading, tuple(_shown(name, row[name]) for row in rows), is_text=name == "degrees")
        for name, heading in _SWEPT.items()
    )
    return Table("sweep", (change, step), columns)


def _shown(name: str, value: Json) -> str:
    if value is None:
        return ""
    if name == "held_bytes" and isinstance(value, int):
        return binary(value)
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
