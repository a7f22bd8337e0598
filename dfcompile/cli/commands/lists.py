"""Commands that list what is registered."""

import click

from dfcompile.cli.endings import warn
from dfcompile.cli.table_command import StrictCommand
from dfcompile.host.outputs import output_width, write_text


@click.command(name="expansions", cls=StrictCommand)
@click.argument("operator", required=False)
@click.option("-v", "--verbose", is_flag=True, help="List what every expansion does and where it comes from.")
def list_expansions(operator: str | None, *, verbose: bool) -> None:
    """List what --expand may name; of one OPERATOR, such as Conv, also what each does and where it comes from."""
    from dfcompile.cli.listings import expansions_listing
    from dfcompile.lowering import registered_expansions

    warn(*registered_expansions().faults)
    write_text(expansions_listing(output_width(), operator, verbose=verbose), None)


@click.command(name="passes", cls=StrictCommand)
def list_passes() -> None:
    """List what is registered for --passes, and where it comes from."""
    from dfcompile.canonical_dag import registered_dag_passes
    from dfcompile.cli.listings import passes_listing
    from dfcompile.lowering import registered_passes

    warn(*registered_passes().faults, *registered_dag_passes().faults)
    write_text(passes_listing(output_width()), None)


@click.command(name="ops", cls=StrictCommand)
def list_ops() -> None:
    """List the operators that have an expansion, how others of ONNX are dealt with, and fields of canonical ones."""
    from dfcompile.cli.listings import ops_listing
    from dfcompile.lowering import registered_expansions

    warn(*registered_expansions().faults)
    write_text(ops_listing(output_width()), None)


@click.command(name="systems", cls=StrictCommand)
def list_systems() -> None:
    """List the machines that --system knows by name."""
    from dfcompile.cli.listings import systems_faults, systems_listing

    warn(*systems_faults())
    write_text(systems_listing(output_width()), None)


@click.command(name="configs", cls=StrictCommand)
def list_configs() -> None:
    """List the configurations of language models that `llm --config` knows by name."""
    from dfcompile.cli.listings import configs_listing

    write_text(configs_listing(output_width()), None)


@click.command(name="plugins", cls=StrictCommand)
@click.option("-v", "--verbose", is_flag=True, help="List dfcompile's own parts and tracebacks as well.")
def list_plugins(*, verbose: bool) -> None:
    """List the kinds of plug-ins, what is found of each and where, and what cannot be imported and why."""
    from dfcompile.cli.listings import plugins_listing

    write_text(plugins_listing(output_width(), verbose=verbose), None)
