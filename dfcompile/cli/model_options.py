"""Options of the commands that read a model: sizes and values of its inputs."""

import click

DIMS = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension of the inputs."
)
FIXED_INPUTS = click.option(
    "--input",
    "fixed_inputs",
    multiple=True,
    metavar="INPUT=VALUE[,VALUE…]",
    help="Value that an input has in every run, such as use_cache=false; one value stands for all elements.",
)
