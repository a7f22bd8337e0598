"""A study of a language model as tables for people: SI prefixes for work, binary ones for bytes."""

import math
from collections.abc import Mapping, Sequence

from dfcompile.language_models.study import StepStudy, Study
from dfcompile.language_models.times.step_time import TimedKernel
from dfcompile.report.plain_values import Json
from dfcompile.report.text_tables import Column, Table, binary, decimal, folded, listed, page, scaled

MOST_CHUNK_ROWS = 9


def study_table(
    study: Study,
    width: int,
    *,
    verbose: bool,
    sweep: Sequence[Mapping[str, Json]] = (),
    mapped: Sequence[str] = (),
) -> str:
    """Return a study as tables that are never wider than the page, with those of its mapping among them."""
    lines = [*(line for text in _model_lines(study) for line in folded(text, width, "  ")), ""]
    lines += _step_table(study).lines(width)
    lines += _place_table(study).lines(width)
    for step in study.steps:
        if step.chunk_s:
            lines += _chunk_table(step).lines(width)
        lines += _kind_table(step).lines(width)
        lines += _kernel_table(step).lines(width)
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


def _model_lines(study: Study) -> list[str]:
    parameters, device = study.parameters, study.device
    active = (
        f", {decimal(parameters.active)} active "
        f"({decimal(parameters.active_without_lookup)} without the input embedding)"
        if parameters.inactive
        else ""
    )
    memory = f"of {binary(device.capacity_bytes)}" if device.capacity_bytes else "of unknown capacity"
    held = f"weights {binary(study.weight_bytes)}, cache {study.kv_bytes_per_token:,} bytes per token"
    name = f"{study.model.name} ({study.model.model_type})"
    return [
        f"{name}: {decimal(parameters.total)} parameters{active}, {len(study.model.layers)} layers",
        f"{held}, {study.precision.summary}",
        f"{device.name}: memory {memory} at {decimal(device.bytes_per_s)}B/s",
    ]


def _step_table(study: Study) -> Table:
    steps, columns = study.steps, []
    ways = list(dict.fromkeys(way for step in steps for way in step.times))
    for way in ways:
        shown = [f"{step.times[way] * 1e3:,.4g}" if way in step.times else "does not fit" for step in steps]
        columns.append(Column(f"{way.value}\nms", tuple(shown)))
    columns += [
        scaled("tokens/s\n{}", [step.tokens_per_s for step in steps]),
        Column("per\nsequence", tuple(f"{step.tokens_per_s_per_sequence:,.4g}" for step in steps)),
        Column("MACs", tuple(decimal(step.macs) for step in steps)),
    ]
    if any(step.energy is not None for step in steps):
        columns.append(Column("J/token", tuple(map(_energy, steps))))
    if any(step.usd_per_million_tokens for step in steps):
        columns.append(Column("USD per\nM tokens", tuple(f"{step.usd_per_million_tokens:,.4g}" for step in steps)))
    return Table(f"steps, counted by {study.request.time.value}", (_names(steps),), tuple(columns))


def _energy(step: StepStudy) -> str:
    if step.energy is None:
        return ""
    return f"{step.energy.total_j / step.batch.tokens:.4g}{' (throttled)' if step.energy.is_throttled else ''}"


def _place_table(study: Study) -> Table:
    steps, capacity = study.steps, study.device.capacity_bytes
    placed = [step.deployment for step in steps]
    columns = [
        Column("chips", tuple(f"{one.degrees.chips:,}" for one in placed)),
        Column("degrees", tuple(one.degrees.name for one in placed), is_text=True),
        Column("tried", tuple(f"{step.tried:,}" for step in steps)),
        Column("impossible", tuple(f"{step.infeasible:,}" for step in steps)),
        Column("exchanges\nms", tuple(f"{one.exchange_s * 1e3:,.4g}" for one in placed)),
        Column("weights\nof a chip", tuple(binary(one.weight_bytes) for one in placed)),
        Column("cache\nof a chip", tuple(binary(one.kv_bytes) for one in placed)),
    ]
    if any(one.offload_bytes for one in placed):
        columns.append(Column("offloaded\nof a chip", tuple(binary(one.offload_bytes) for one in placed)))
    shares = tuple(f"{100 * one.held_bytes / capacity:.1f}" if capacity else "" for one in placed)
    return Table("chips", (_names(steps),), (*columns, Column("memory\n%", shares)))


def _names(steps: Sequence[StepStudy]) -> Column:
    return Column("step", tuple(step.batch.name for step in steps), is_text=True)


def _chunk_table(step: StepStudy) -> Table:
    """Return the steps that fill in a prompt: all, or some of them from the first to the last."""
    count = len(step.chunk_s)
    shown = list(dict.fromkeys(round(at * (count - 1) / (MOST_CHUNK_ROWS - 1)) for at in range(MOST_CHUNK_ROWS)))
    pieces = [step.batch.chunks[at].groups[0] for at in shown]
    return Table(
        f"{step.batch.name}: {'chunks' if len(shown) == count else 'some of the chunks'} of a prompt",
        (Column("chunk", tuple(f"{at + 1:,} of {count:,}" for at in shown)),),
        (
            Column("tokens\nbefore", tuple(f"{piece.past:,}" for piece in pieces)),
            Column("tokens", tuple(f"{piece.new:,}" for piece in pieces)),
            scaled("time\n{}s", [step.chunk_s[at] for at in shown]),
        ),
    )


def _kind_table(step: StepStudy) -> Table:
    parts = step.deployment.kernels.parts
    whole = sum(part.count * part.exec_s for part in parts) or 1.0
    return Table(
        f"{step.batch.name}: layers of a chip",
        (Column("part", tuple(part.part for part in parts), is_text=True),),
        (
            Column("count", tuple(f"{part.count:,}" for part in parts)),
            scaled("each\n{}s", [part.exec_s for part in parts]),
            Column("share\n%", tuple(f"{100 * part.count * part.exec_s / whole:.1f}" for part in parts)),
            scaled("transfers\nhidden {}s", [part.hidden_s for part in parts]),
            scaled("transfers\nexposed {}s", [part.exposed_s for part in parts]),
        ),
    )


def _kernel_table(step: StepStudy) -> Table:
    shown = step.deployment.kernels.kernels
    whole = sum(one.kernel.count * one.time.exec_s for one in shown) or 1.0
    columns = [
        Column("count", tuple(f"{one.kernel.count:,}" for one in shown)),
        Column("m x k x n", tuple(_extents(one) for one in shown), is_text=True),
        Column("MACs", tuple(decimal(one.kernel.macs) for one in shown)),
        Column("bytes", tuple(binary(one.kernel.bytes) for one in shown)),
        scaled("compute\n{}s", [one.time.compute_s for one in shown]),
        scaled("memory\n{}s", [one.time.memory_s for one in shown]),
        scaled("time\n{}s", [one.time.exec_s for one in shown]),
        Column("bound by", tuple(one.time.bound for one in shown), is_text=True),
        Column("share\n%", tuple(f"{100 * one.kernel.count * one.time.exec_s / whole:.1f}" for one in shown)),
    ]
    if any(one.time.tile for one in shown):
        columns.append(Column("tile", tuple(one.time.tile for one in shown), is_text=True))
    return Table(
        f"{step.batch.name}: kernels of a chip",
        (Column("kernel", tuple(one.kernel.name for one in shown), is_text=True),),
        tuple(columns),
    )


def _extents(one: TimedKernel) -> str:
    kernel = one.kernel
    return f"{kernel.m}x{kernel.k}x{kernel.n}{f' x{kernel.batch}' if kernel.batch > 1 else ''}"


def _answers(study: Study) -> list[str]:
    """Return time to the first and per further token, where the steps are those."""
    first = next((step for step in study.steps if not any(group.decodes for group in step.batch.groups)), None)
    later = next((step for step in study.steps if step.batch.is_decode), None)
    lines = [
        f"time to first token in {len(step.chunk_s):,} chunks: {math.fsum(step.chunk_s) * 1e3:,.4g} ms, "
        f"{math.fsum(step.chunk_s) / len(step.chunk_s) * 1e3:,.4g} ms each in the mean ({study.request.time.value})"
        for step in study.steps
        if step.chunk_s
    ]
    if first is not None:
        lines.append(f"time to first token: {first.exec_s * 1e3:,.4g} ms ({study.request.time.value})")
    if later is not None:
        how = "; ".join((study.request.time.value, *later.assumptions))
        lines.append(f"time per output token: {later.exec_s * 1e3:,.4g} ms ({how})")
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
    return Table(
        "sweep",
        (
            Column(str(rows[0]["change"]), tuple(str(row["value"]) for row in rows)),
            Column("step", tuple(str(row["step"]) for row in rows), is_text=True),
        ),
        tuple(
            Column(heading, tuple(_shown(name, row[name]) for row in rows), is_text=name == "degrees")
            for name, heading in _SWEPT.items()
        ),
    )


def _shown(name: str, value: Json) -> str:
    if value is None:
        return ""
    if name == "held_bytes" and isinstance(value, int):
        return binary(value)
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
