"""Layers of a language model as the back end maps them: plain values and tables."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.dfmodel_backend import Mapping as BackEndMapping
from dfcompile.dfmodel_backend import tensor_layouts
from dfcompile.language_models.mapping.mapped_layers import MappedPart, MappedStep
from dfcompile.report.figure import filled
from dfcompile.report.mapping_figures import LayoutSummary
from dfcompile.report.plain_values import Json, rounded, to_record
from dfcompile.report.text_tables import Column, Table, binary, ends_of, listed, scaled

NAMED_KERNELS = 3  # of a configuration; of more the first and the last

Record = dict[str, Json]


class MappingReport(Struct, frozen=True):
    """The mapping of all steps, in every form."""

    records: tuple[Record, ...]
    rows: tuple[Mapping[str, Json], ...]
    lines: tuple[str, ...]


def mapping_report(steps: Sequence[MappedStep], width: int, *, verbose: bool) -> MappingReport:
    """Return mapped steps as plain values, rows (one per configuration of a layer of each part) and lines."""
    rows = [
        {"step": step.batch.name, "part": part.part, "count": part.count, **row}
        for step in steps
        for part in step.parts
        for row in _configurations(part)
    ]
    lines = [line for step in steps for line in _lines(step, width, verbose=verbose)]
    return MappingReport(tuple(map(_record, steps)), tuple(rows), tuple(lines))


def _record(step: MappedStep) -> Record:
    """Return a mapped step: its parts, and the configurations of a layer of each."""
    time_s = step.time_s
    return {
        "step": step.batch.name,
        "system": step.system.name,
        "time_s": None if time_s is None else rounded(time_s),
        "assumptions": [*_assumptions(step)],
        "parts": [_part_record(part) for part in step.parts],
    }


def _part_record(part: MappedPart) -> Record:
    mapping = part.mapping
    record: Record = {
        "part": part.part,
        "count": part.count,
        "kernels": len(part.graph.kernels),
        "flop": part.graph.flop,
        "least_bytes": part.least_bytes,
        "roofline_s": rounded(part.roofline_s),
        "is_mapped": mapping is not None,
        "reason": part.reason or None,
    }
    if mapping is None:
        return record
    figures = mapping.figures
    return record | {
        "chips": mapping.chips,
        "time_s": rounded(figures.time_s),
        "bound_s": rounded(mapping.bound_time_s),
        "gap": rounded(mapping.gap),
        "memory_bytes": figures.dram_bytes,
        "network_bytes": figures.network_bytes,
        "network_chips": list(mapping.network_chips),
        "sharding": {name: list(loops) for name, loops in part.sharding.items()},
        "layouts": _layouts(part, mapping),
        "configurations": [dict(row) for row in _configurations(part)],
        "exchanges": [
            {
                "tensor": one.tensor,
                "kind": one.kind.value,
                "bytes": one.message_bytes,
                "time_s": rounded(one.time_ns * 1e-9),
            }
            for one in figures.exchanges
        ],
    }


def _layouts(part: MappedPart, mapping: BackEndMapping) -> list[Json]:
    """Return how chips hold what each kernel reads and writes; configurations are counted from 1."""
    configs = mapping.figures.configs
    number = {name: at for at, one in enumerate(configs, start=1) for name in one.kernels}
    layouts = tensor_layouts(part.graph, dict(mapping.sharding), mapping.network_chips)
    accesses = ("written" if one.is_written else "read" for one in layouts)
    return [
        to_record(filled(LayoutSummary, one, configuration=number[one.kernel], access=access))
        for one, access in zip(layouts, accesses, strict=True)
    ]


def _configurations(part: MappedPart) -> list[Record]:
    configs = part.mapping.figures.configs if part.mapping is not None else ()
    return [
        {
            "configuration": number,
            "time_s": rounded(one.time_ns * 1e-9),
            "bound_by": one.bound_by,
            "memory_bytes": one.dram_read_bytes + one.dram_write_bytes,
            "sram_bytes": one.sram_bytes,
            "kernels": " ".join(one.kernels),
        }
        for number, one in enumerate(configs, start=1)
    ]


def _lines(step: MappedStep, width: int, *, verbose: bool) -> list[str]:
    """Return a mapped step as tables."""
    lines = _part_table(step).lines(width)
    for part in step.parts:
        if part.mapping is not None and len(part.graph.kernels) > 1:
            title = f"{step.batch.name}: configurations of {part.part}"
            lines += _configuration_table(title, part.mapping).lines(width)
    if step.time_s is not None:
        lines.append(f"mapped: {step.time_s * 1e3:,.4g} ms per step, layer after layer")
    lines += listed("not mapped", [f"{part.part}: {part.reason}" for part in step.parts if part.reason], width)
    if verbose:
        lines += listed("of the mapping", _assumptions(step), width)
    return [*lines, ""]


def _assumptions(step: MappedStep) -> list[str]:
    assumed = (*step.system.sources, *dict.fromkeys(one for part in step.parts for one in part.graph.assumptions))
    return [f"{one.name}: {one.value}" for one in assumed]


def _part_table(step: MappedStep) -> Table:
    figures = [(part, part.mapping, part.mapping.figures) for part in step.parts if part.mapping is not None]
    parts = [part for part, _, _ in figures]
    return Table(
        f"{step.batch.name}: one layer each, mapped on {step.system.name}",
        (Column("part", tuple(part.part for part in parts), is_text=True),),
        (
            Column("count", tuple(f"{part.count:,}" for part in parts)),
            Column("kernels", tuple(f"{len(part.graph.kernels):,}" for part in parts)),
            Column("configs", tuple(f"{len(one.configs):,}" for _, _, one in figures)),
            Column("chips", tuple(f"{mapping.chips:,}" for _, mapping, _ in figures)),
            scaled("mapped\n{}s", [one.time_s for _, _, one in figures]),
            scaled("bound\n{}s", [mapping.bound_time_s for _, mapping, _ in figures]),
            scaled("roofline,\n1 chip {}s", [part.roofline_s for part in parts]),
            Column("memory", tuple(binary(one.dram_bytes) for _, _, one in figures)),
            Column("at least", tuple(binary(part.least_bytes) for part in parts)),
        ),
    )


def _configuration_table(title: str, mapping: BackEndMapping) -> Table:
    configs = mapping.figures.configs
    return Table(
        title,
        (Column("#", tuple(str(number) for number in range(1, len(configs) + 1))),),
        (
            scaled("time\n{}s", [one.time_ns * 1e-9 for one in configs]),
            Column("bound by", tuple(one.bound_by for one in configs), is_text=True),
            Column("memory\nof a chip", tuple(binary(one.dram_read_bytes + one.dram_write_bytes) for one in configs)),
            Column("kernels", tuple(ends_of(one.kernels, NAMED_KERNELS) for one in configs), is_text=True),
        ),
    )
