"""Commands that list what is registered."""

import click

from dfcompile.cli.strict_command import StrictCommand
from dfcompile.host.outputs import output_width, write_text


@click.command(name="expansions", cls=StrictCommand)
def list_expansions() -> None:
    """List what is registered for --expand, and where it comes from."""
    from dfcompile.cli.listings import expansions_listing

    write_text(expansions_listing(output_width()), None)


@click.command(name="passes", cls=StrictCommand)
def list_passes() -> None:
    """List what is registered for --passes, and where it comes from."""
    from dfcompile.cli.listings import passes_listing

    write_text(passes_listing(output_width()), None)


@click.command(name="ops", cls=StrictCommand)
def list_ops() -> None:
    """List the operators that have an expansion, those of ONNX and the canonical ones, and the fields of the latter."""
    from dfcompile.cli.listings import ops_listing

    write_text(ops_listing(output_width()), None)


@click.command(name="systems", cls=StrictCommand)
def list_systems() -> None:
    """List the machines that --system knows by name."""
    from dfcompile.cli.listings import systems_listing

    write_text(systems_listing(output_width()), None)
