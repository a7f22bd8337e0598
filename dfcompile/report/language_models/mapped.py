"""Layers of a language model as the back end maps them: plain values and tables."""

from collections.abc import Iterator, Mapping

from dfcompile.dfmodel_backend import Mapping as BackEndMapping
from dfcompile.dfmodel_backend import tensor_layouts
from dfcompile.language_models.mapping.mapped_layers import MappedPart, MappedStep
from dfcompile.report.columns import Derived, table_columns
from dfcompile.report.figure import figure, filled, record
from dfcompile.report.mapping_figures import LayoutSummary
from dfcompile.report.plain_values import Json, rounded, to_record
from dfcompile.report.text_tables import Column, Table, binary, ends_of, listed, milliseconds

NAMED_KERNELS = 3  # per configuration; of a longer one its first and last kernels are named

Record = dict[str, Json]


@record("configurations")
class ConfigurationFigures:
    """Kernels of a layer that are on the chip together."""

    configuration: int = figure("its number, from 1")
    time_s: float = figure("of the configuration", heading="time\n{}s")
    bound_by: str = figure("what limits it", heading="bound by")
    memory_bytes: int = figure("read from DRAM and written to it, of a chip", heading="memory\nof a chip", cell=binary)
    sram_bytes: int = figure("in use")
    kernels: str = figure("names of its kernels")


@record()
class ExchangeFigures:
    """What chips exchange."""

    tensor: str = figure("that is exchanged")
    kind: str = figure("of collective")
    bytes: int = figure("of the message", of="message_bytes")
    time_s: float = figure("of the exchange")


@record("parts")
class MappingFigures:
    """The mapping of a layer."""

    chips: int = figure("that it uses", heading="chips")
    time_s: float = figure("of a layer", of="figures.time_s", heading="mapped\n{}s")
    bound_s: float = figure("that no mapping falls below", of="bound_time_s", heading="bound\n{}s")
    gap: float = figure("(`time_s` − `bound_s`) / `bound_s`")
    memory_bytes: int = figure("of all chips", of="figures.dram_bytes", heading="memory", cell=binary)
    network_bytes: int = figure("of the messages", of="figures.network_bytes")
    network_chips: tuple[int, ...] = figure("chips along each dimension of the network")
    sharding: Mapping[str, tuple[str, ...]] = figure("loop of each kernel that each dimension of the network splits")
    layouts: tuple[LayoutSummary, ...] = figure("how chips hold what each kernel reads and writes")
    configurations: tuple[ConfigurationFigures, ...] = figure("in their order")
    exchanges: tuple[ExchangeFigures, ...] = figure("between chips", of="figures.exchanges")


@record("parts")
class PartFigures:
    """All layers of one kind, of which one is mapped; or the head."""

    part: str = figure("kind of layer, or head")
    count: int = figure("layers of the kind", heading="count")
    kernels: int = figure("of a layer", heading="kernels")
    flop: int = figure("of a layer", of="graph.flop")
    least_bytes: int = figure(
        "that no schedule on a chip falls below", heading="at least", cell=binary, after="mapping.memory_bytes"
    )
    roofline_s: float = figure("on one chip", heading="roofline,\n1 chip {}s", after="mapping.bound_s")
    is_mapped: bool = figure("whether there is a mapping")
    reason: str | None = figure("why there is none")
    mapping: MappingFigures | None = figure("of a layer", is_spread=True, default=None)


def mapped_record(step: MappedStep) -> Record:
    """Return a mapped step as plain values."""
    return {
        "step": step.batch.name,
        "system": step.system.name,
        "time_s": None if step.time_s is None else rounded(step.time_s),
        "assumptions": [*_assumptions(step)],
        "parts": [to_record(_figures(part)) for part in step.parts],
    }


def mapped_rows(step: MappedStep) -> Iterator[Record]:
    """Yield a row per configuration of a layer of each part."""
    for part in map(_figures, step.parts):
        own: Record = {"step": step.batch.name, "part": part.part, "count": part.count}
        yield from (own | to_record(config) for config in (part.mapping.configurations if part.mapping else ()))


def _figures(part: MappedPart) -> PartFigures:
    mapping = part.mapping
    figures = None if mapping is None else _mapping_figures(part, mapping)
    kernels, reason = len(part.graph.kernels), part.reason or None
    return filled(PartFigures, part, kernels=kernels, is_mapped=mapping is not None, reason=reason, mapping=figures)


def _mapping_figures(part: MappedPart, mapping: BackEndMapping) -> MappingFigures:
    number = {name: count for count, config in enumerate(mapping.figures.configs, start=1) for name in config.kernels}
    layouts, configurations = [], []
    for layout in tensor_layouts(part.graph, dict(mapping.sharding), mapping.network_chips):
        access = "written" if layout.is_written else "read"
        layouts.append(filled(LayoutSummary, layout, configuration=number[layout.kernel], access=access))
    for count, config in enumerate(mapping.figures.configs, start=1):
        own = {"memory_bytes": config.dram_read_bytes + config.dram_write_bytes, "kernels": " ".join(config.kernels)}
        configurations.append(filled(ConfigurationFigures, config, configuration=count, **own))
    lists = {"sharding": part.sharding, "layouts": tuple(layouts), "configurations": tuple(configurations)}
    return filled(MappingFigures, mapping, **lists)


def mapped_lines(step: MappedStep, width: int, *, verbose: bool) -> list[str]:
    """Return a mapped step as tables."""
    rows = [_figures(part) for part in step.parts]
    mapped = [row for row in rows if row.mapping is not None]
    labels = Column("part", tuple(part.part for part in mapped), is_text=True)
    configs = Derived[PartFigures](
        "configs", lambda part: f"{len(part.mapping.configurations):,}" if part.mapping else "", after="kernels"
    )
    title = f"{step.batch.name}: one layer each, mapped on {step.system.name}"
    lines = Table(title, (labels,), table_columns("parts", mapped, (configs,))).lines(width)
    for part, row in zip(step.parts, rows, strict=True):
        if part.mapping is not None and row.mapping is not None and row.kernels > 1:
            names = (ends_of(config.kernels, NAMED_KERNELS) for config in part.mapping.figures.configs)
            numbers = Column("#", tuple(str(config.configuration) for config in row.mapping.configurations))
            columns = table_columns("configurations", row.mapping.configurations)
            kernels = Column("kernels", tuple(names), is_text=True)
            title = f"{step.batch.name}: configurations of {part.part}"
            lines += Table(title, (numbers,), (*columns, kernels)).lines(width)
    if step.time_s is not None:
        lines.append(f"mapped: {milliseconds(step.time_s)} ms per step, layer after layer")
    lines += listed("not mapped", [f"{row.part}: {row.reason}" for row in rows if row.reason], width)
    if verbose:
        lines += listed("assumptions of the mapping", _assumptions(step), width)
    return [*lines, ""]


def _assumptions(step: MappedStep) -> list[str]:
    of_graphs = dict.fromkeys(assumption for part in step.parts for assumption in part.graph.assumptions)
    return [f"{assumption.name}: {assumption.value}" for assumption in (*step.system.sources, *of_graphs)]
