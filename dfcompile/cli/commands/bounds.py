"""``dfcompile bounds``: the least traffic of operators and models for every buffer size."""

from pathlib import Path

import click

from dfcompile.cli.completion import complete_from, complete_system
from dfcompile.cli.model_options import DIMS, FIXED_INPUTS
from dfcompile.cli.pages import HTML, files_alone, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand, joined, target_of
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text

_PER = ("operator", "model")


@click.command(name="bounds", cls=StrictCommand)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--gemm", metavar="M,K,N", help="One product of matrices instead of a model.")
@click.option("--bmm", metavar="H,M,K,N[,shared|,groups=G]",
              help="Products of H heads: each with operands of its own, or one B for all or for each of G groups.",
              )  # fmt: skip
@click.option("--conv", metavar="C,K,PxQ,RxS[,stride=N…]",
              help="One convolution: channels, filters, image of the result, window; then stride, dilation, pad, "
              "groups, batch.")  # fmt: skip
@click.option("--chain", metavar="M,W0,W1[,W2…]",
              help="Products one after the other: rows, columns of the input, and of each result.")  # fmt: skip
@click.option("--attention", metavar="H,M,N,D[,groups=G…]",
              help="Attention: heads, queries, keys, columns; then columns of values (value=), groups of heads that "
              "share keys and values.")  # fmt: skip
@click.option("--buffer", "buffers", multiple=True, metavar="SIZE[,SIZE…]", help="Buffer sizes: 64KiB,1MiB.")
@click.option("--per", multiple=True, shell_complete=complete_from(*_PER), metavar="NAME[,NAME]",
              help="Tables of a model: operator, model; both by default.")  # fmt: skip
@click.option("--word", default="4", show_default=True, metavar="BYTES", help="Size of a word, but of models.")
@click.option("--tiles", default="integer", show_default=True, shell_complete=complete_from("integer", "divisors"),
              metavar="NAME", help="Tile sizes that are tried: integer or divisors.")  # fmt: skip
@click.option("--halo", default="true", show_default=True, shell_complete=complete_from("true", "forget"),
              metavar="NAME", help="What windows find again: true, or forget as Timeloop does.")  # fmt: skip
@click.option("--first-read", is_flag=True, help="Count the first visit to a tile of the result as a read.")
@click.option("--within", metavar="FACTOR", help="Find the smallest buffer that moves at most so many times the least.")
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=SIZExSIZE…",
              help="Size of a model input that the model leaves open.")  # fmt: skip
@DIMS
@FIXED_INPUTS
@click.option("--system", metavar="FILE|NAME", shell_complete=complete_system,
              help="The machine whose SRAM is marked and whose die is shared.")  # fmt: skip
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw traffic over buffer size there.")
@HTML
@click.option("--format", "format_", default="table", show_default=True, metavar="NAME",
              shell_complete=complete_from("table", "json", "csv"), help="table, json or csv.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
def bounds(
    *,
    model: Path | None,
    gemm: str | None,
    bmm: str | None,
    conv: str | None,
    chain: str | None,
    attention: str | None,
    buffers: tuple[str, ...],
    per: tuple[str, ...],
    word: str,
    tiles: str,
    halo: str,
    first_read: bool,
    within: str | None,
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    fixed_inputs: tuple[str, ...],
    system: str | None,
    svg: Path | None,
    html: Path | None,
    format_: str,
    output: Path | None,
) -> None:
    """Say how little a model, a product or a convolution can move, for every buffer size."""
    output = target_of(output)
    check_targets((output, svg, html))
    asked = {"MODEL": model, "--gemm": gemm, "--bmm": bmm, "--conv": conv, "--chain": chain, "--attention": attention}
    given = [name for name, value in asked.items() if value]
    if len(given) != 1:
        raise UserError(f"bounds: found {' and '.join(given) or 'nothing'} against one of {', '.join(asked)}")

    from dfcompile.report.traffic_bounds import bounds_text, check_bounds_format

    form = check_bounds_format(format_)

    from dfcompile.api.bound_fusions import bound_fusion
    from dfcompile.api.bound_requests import (
        parse_attention,
        parse_bmm,
        parse_chain,
        parse_conv,
        parse_gemm,
        parse_within,
        parse_word,
    )
    from dfcompile.api.bound_traffic import bound_model, bound_shape, with_machine
    from dfcompile.api.requests import one_of
    from dfcompile.bounds.tilings import Halo, Rules, Tiles
    from dfcompile.visualization.ski_slopes import slopes_to_svg

    rules = Rules(one_of("tiles", tiles, tuple(Tiles)), one_of("halo", halo, tuple(Halo)), not first_read)
    factor = None if within is None else parse_within(within)
    sizes = joined(buffers) if buffers else None
    if model is not None:
        rows = tuple(dict.fromkeys(one_of("per", each, _PER) for each in joined(per or _PER).split(",")))
        found = bound_model(
            model,
            buffers=sizes,
            rules=rules,
            within=factor,
            shapes=shapes,
            dims=dims,
            fixed_inputs=fixed_inputs,
            per=rows,
            draws=svg is not None or html is not None,
            show=show_stage,
        )
    elif chain or attention:
        fused = parse_chain(chain) if chain else parse_attention(attention or "")
        with show_stage("bounding the chain"):
            found = bound_fusion(fused, buffers=sizes, word_bytes=parse_word(word), rules=rules, within=factor)
    else:
        text = gemm or bmm or conv or ""
        shape = (parse_gemm if gemm else parse_bmm if bmm else parse_conv)(text)
        with show_stage(f"bounding {text}"):
            found = bound_shape(shape, buffers=sizes, word_bytes=parse_word(word), rules=rules, within=factor)
    sram = None
    if system is not None:
        found, sram = with_machine(found, system)
    if svg is not None:
        with show_stage("drawing"):
            picture = slopes_to_svg(found.subject, found.curves, sram)
        write_text(picture, svg)
    write_page(
        html,
        lambda: bounds_text(found, "json", output_width()),
        files_alone(model, system),
        [svg] if svg is not None else [],
    )
    write_text(bounds_text(found, form, output_width()), output)
