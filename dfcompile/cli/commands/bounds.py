"""``dfcompile bounds``: the least traffic of operators and models for every buffer size."""

from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options.commands import BoundsOptions, BoundsOutputs


@table_command("bounds", BoundsOptions, BoundsOutputs)
def bounds(options: BoundsOptions, outputs: BoundsOutputs) -> None:
    """Say how little a model, a product or a convolution can move, for every buffer size."""
    svg, html = outputs.svg, outputs.html
    check_targets((outputs.output, svg, html))
    drawn_as = {"--intensity": outputs.intensity, "--cloud": outputs.cloud, "--effectual": outputs.effectual}
    ways = [flag for flag, is_given in drawn_as.items() if is_given]
    if ways and svg is None:
        raise UserError(f"{ways[0]}: found without --svg FILE, against a picture that is drawn")
    if outputs.effectual and len(ways) > 1:
        raise UserError(f"--effectual: found beside {ways[0]}, against a picture of one kind")

    from dfcompile.api.bound_model import bounded, effectual_buffers
    from dfcompile.visualization.ski_slopes import effectual_to_svg, slopes_to_svg

    draws = html is not None or (svg is not None and not outputs.effectual)
    run = bounded(options, draws=draws, cloud=outputs.cloud, show=show_stage)
    found = run.report
    if svg is not None:
        with show_stage("drawing"):
            if outputs.effectual:
                picture = effectual_to_svg(found.subject, effectual_buffers(found))
            else:
                picture = slopes_to_svg(found.subject, found.slopes, found.sram_bytes, is_intensity=outputs.intensity)
        write_text(picture, svg)
    write_page(html, run, [svg] if svg is not None else [])
    write_text(run.text(outputs.format, output_width()), outputs.output)
