"""``dfcompile rtl``: simulates circuits, and compares their cycles with those that are printed."""

from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.host.outputs import check_targets, write_text
from dfcompile.options.commands import RtlOptions


@table_command("rtl", RtlOptions)
def rtl(options: RtlOptions) -> None:
    """Simulate the circuits of a folder that --emit rtl wrote, and compare their cycles with the printed ones.

    What is in the folder is compiled and run as code with your rights.
    """
    check_targets([options.waves, options.output])

    from dfcompile.rtl.comparison import compared
    from dfcompile.rtl.simulation import Fifos

    fifos = Fifos(options.fifo == "registered", options.places)
    with show_stage(f"simulating {options.folder}"):
        lines = list(compared(options.folder, options.simulator, fifos, options.waves))
    write_text("".join(f"{line}\n" for line in lines), options.output)
