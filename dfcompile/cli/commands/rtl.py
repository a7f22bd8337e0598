"""``dfcompile rtl``: simulates circuits, and compares their cycles with those that are printed; or builds them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options.commands import RtlOptions

if TYPE_CHECKING:
    from dfcompile.rtl.area import CircuitArea


@table_command("rtl", RtlOptions)
def rtl(options: RtlOptions) -> None:
    """Simulate the circuits of a folder that --emit rtl wrote, and compare their cycles; --area builds them instead.

    What is in the folder is compiled and run as code with your rights.
    """
    check_targets([options.waves, options.output])
    if options.area is not None:
        _build(options)
        return

    from dfcompile.rtl.comparison import compared
    from dfcompile.rtl.simulation import Fifos

    fifos = Fifos(options.fifo == "registered", options.places)
    with show_stage(f"simulating {options.folder}"):
        lines = list(compared(options.folder, options.simulator, fifos, options.waves))
    write_text("".join(f"{line}\n" for line in lines), options.output)


def _build(options: RtlOptions) -> None:
    simulating = {"--waves": options.waves is not None, "--simulator": options.simulator != "auto"}
    simulating |= {"--fifo": options.fifo == "registered", "--places": options.places > 0}
    for flag, is_given in simulating.items():
        if is_given:
            raise UserError(f"rtl: {flag}: found beside --area, against circuits that are simulated")

    from dfcompile.rtl.area import DEVICE, SEED, SPEED_GRADE, built_area, installed_tools
    from dfcompile.rtl.comparison import read_printed

    printed, tools, areas = read_printed(options.folder), installed_tools(), []
    for one in printed:
        with show_stage(f"building {one.module}"):
            areas.append(built_area(options.folder, one, tools))
    lines = list(_lines(areas, output_width()))
    lines.append(f"{DEVICE}, speed grade {SPEED_GRADE}; {tools.versions}, seed {SEED}")
    write_text("".join(f"{line}\n" for line in lines), options.output)


def _lines(areas: "list[CircuitArea]", width: int) -> Iterator[str]:
    """Yield tables: of circuits beside each other, and of the parts of each."""
    from dfcompile.report.text_tables import Column, Table

    def columns(cells: list[tuple[int, int, int, int]]) -> tuple[Column, ...]:
        headings = ("LUTs", "flip-\nflops", "block\nRAMs", "multi-\npliers")
        return tuple(
            Column(heading, tuple(f"{number:,}" for number in numbers))
            for heading, numbers in zip(headings, zip(*cells, strict=True), strict=True)
        )

    totals = [area.total for area in areas]
    clocks = ("too large" if area.clock_mhz is None else f"{area.clock_mhz:.1f}" for area in areas)
    times = ("–" if area.time_us is None else f"{area.time_us:.3f}" for area in areas)
    labels = (Column("circuit", tuple(area.module for area in areas), is_text=True),)
    ends = (
        Column("clock\nMHz", tuple(clocks)),
        Column("makespan\ncycles", tuple("deadlock" if area.cycles is None else f"{area.cycles:,}" for area in areas)),
        Column("makespan\nµs", tuple(times)),
    )
    numbers = [(one.luts, one.flip_flops, one.block_rams, one.multipliers) for one in totals]
    yield from Table("area and clock", labels, (*columns(numbers), *ends)).lines(width)
    for area in areas:
        parts = area.parts
        labels = (Column("part", tuple(part.name for part in parts), is_text=True),)
        tasks = Column("tasks", tuple(str(part.tasks or "") for part in parts))
        cells = [part.cells for part in parts]
        numbers = [(one.luts, one.flip_flops, one.block_rams, one.multipliers) for one in cells]
        yield from Table(area.module, labels, (tasks, *columns(numbers))).lines(width)
