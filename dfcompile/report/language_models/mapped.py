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

NAMED_KERNELS = 3  # of a configuration; of more the first and the last

Record = dict[str, Json]


@record("configurations")
class ConfigurationFigures:
    """Kernels of a layer that are on the chip together."""

    configuration: int = figure("its number, from 1")
    time_s: float = figure("of it", heading="time\n{}s")
    bound_by: str = figure("what limits it", heading="bound by")
    memory_bytes: int = figure("of a chip", heading="memory\nof a chip", cell=binary)
    sram_bytes: int = figure("in use")
    kernels: str = figure("names of its kernels")


@record()
class ExchangeFigures:
    """What chips exchange."""

    tensor: str = figure("that is exchanged")
    kind: str = figure("of collective")
    bytes: int = figure("of the message", of="message_bytes")
    time_s: float = figure("of it")


@record("parts")
class MappingFigures:
    """The mapping of a layer."""

    chips: int = figure("that it uses", heading="chips")
    time_s: float = figure("of a layer", of="figures.time_s", heading="mapped\n{}s")
    bound_s: float = figure("that no mapping falls below", of="bound_time_s", heading="bound\n{}s")
    gap: float = figure("(`time_s` − `bound_s`) / `bound_s`")
    memory_bytes: int = figure("of all chips", of="figures.dram_bytes", heading="memory", cell=binary)
    network_bytes: int = figure("of the messages", of="figures.network_bytes")
    network_chips: tuple[int, ...] = figure("along each dimension of the network")
    sharding: Mapping[str, tuple[str, ...]] = figure("loop of each kernel that is split, by dimension")
    layouts: tuple[LayoutSummary, ...] = figure("how chips hold what each kernel reads and writes")
    configurations: tuple[ConfigurationFigures, ...] = figure("in their order")
    exchanges: tuple[ExchangeFigures, ...] = figure("between chips", of="figures.exchanges")


@record("parts")
class PartFigures:
    """The layers of one kind, one layer mapped."""

    part: str = figure("which")
    count: int = figure("layers", heading="count")
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
        yield from (own | to_record(one) for one in (part.mapping.configurations if part.mapping else ()))


def _figures(part: MappedPart) -> PartFigures:
    mapping = part.mapping
    found = None if mapping is None else _mapping_figures(part, mapping)
    kernels, reason = len(part.graph.kernels), part.reason or None
    return filled(PartFigures, part, kernels=kernels, is_mapped=mapping is not None, reason=reason, mapping=found)


def _mapping_figures(part: MappedPart, mapping: BackEndMapping) -> MappingFigures:
    number = {name: at for at, one in enumerate(mapping.figures.configs, start=1) for name in one.kernels}
    layouts, configurations = [], []
    for layout in tensor_layouts(part.graph, dict(mapping.sharding), mapping.network_chips):
        access = "written" if layout.is_written else "read"
        layouts.append(filled(LayoutSummary, layout, configuration=number[layout.kernel], access=access))
    for at, one in enumerate(mapping.figures.configs, start=1):
        own = {"memory_bytes": one.dram_read_bytes + one.dram_write_bytes, "kernels": " ".join(one.kernels)}
        configurations.append(filled(ConfigurationFigures, one, configuration=at, **own))
    of_it = {"sharding": part.sharding, "layouts": tuple(layouts), "configurations": tuple(configurations)}
    return filled(MappingFigures, mapping, **of_it)


def mapped_lines(step: MappedStep, width: int, *, verbose: bool) -> list[str]:
    """Return a mapped step as tables."""
    parts = [_figures(part) for part in step.parts]
    mapped = [part for part in parts if part.mapping is not None]
    labels = Column("part", tuple(part.part for part in mapped), is_text=True)
    configs = Derived[PartFigures](
        "configs", lambda part: f"{len(part.mapping.configurations):,}" if part.mapping else "", after="kernels"
    )
    title = f"{step.batch.name}: one layer each, mapped on {step.system.name}"
    lines = Table(title, (labels,), table_columns("parts", mapped, (configs,))).lines(width)
    for part, own in zip(step.parts, parts, strict=True):
        if part.mapping is not None and own.mapping is not None and own.kernels > 1:
            names = (ends_of(one.kernels, NAMED_KERNELS) for one in part.mapping.figures.configs)
            numbers = Column("#", tuple(str(one.configuration) for one in own.mapping.configurations))
            columns = table_columns("configurations", own.mapping.configurations)
            kernels = Column("kernels", tuple(names), is_text=True)
            title = f"{step.batch.name}: configurations of {part.part}"
            lines += Table(title, (numbers,), (*columns, kernels)).lines(width)
    if step.time_s is not None:
        lines.append(f"mapped: {milliseconds(step.time_s)} ms per step, layer after layer")
    lines += listed("not mapped", [f"{part.part}: {part.reason}" for part in parts if part.reason], width)
    if verbose:
        lines += listed("of the mapping", _assumptions(step), width)
    return [*lines, ""]


def _assumptions(step: MappedStep) -> list[str]:
    assumed = (*step.system.sources, *dict.fromkeys(one for part in step.parts for one in part.graph.assumptions))
    return [f"{one.name}: {one.value}" for one in assumed]
