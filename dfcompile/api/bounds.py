"""I/O bounds of what is asked for: a model, a product, a convolution, a chain or attention."""

from dfcompile.api.bound_requests import parse_attention, parse_bmm, parse_chain, parse_conv, parse_gemm
from dfcompile.api.bound_shapes import bound_shape
from dfcompile.api.bound_traffic import bound_model
from dfcompile.bounds.tilings import Halo, Rules, Tiles
from dfcompile.frontend import ReadOptions
from dfcompile.options import ShowStage, of_stage, show_nothing
from dfcompile.options.bounding import ROWS, BoundsOptions
from dfcompile.options.readers import one_of
from dfcompile.report.traffic_bounds import BoundsReport


def bounds_of(options: BoundsOptions, *, draws: bool = False, show: ShowStage = show_nothing) -> BoundsReport:
    """Return the bounds of what is asked for.

    Args:
        options: of ``dfcompile bounds``.
        draws: whether plans of models are made for all powers of two, so that their curve can be drawn.
        show: gives a context that lasts as long as a stage.

    Raises:
        UserError: the model cannot be read, or an option has another form.
    """
    rules = Rules(
        one_of("--tiles", options.tiles, tuple(Tiles)),
        one_of("--halo", options.halo, tuple(Halo)),
        not options.first_read,
    )
    sizes, word_bytes, factor = options.buffers, options.word, options.within
    if options.model is not None:
        named = options.per.split(",") if options.per else ROWS
        rows = tuple(dict.fromkeys(one_of("--per", each, ROWS) for each in named))
        reading = ReadOptions(**of_stage(options, "reading"))
        return bound_model(
            options.model, reading, buffers=sizes, rules=rules, within=factor, per=rows, draws=draws, show=show
        )
    if options.chain or options.attention:
        fused = parse_chain(options.chain) if options.chain else parse_attention(options.attention or "")
        with show("bounding the chain"):
            return bound_shape(fused, buffers=sizes, word_bytes=word_bytes, rules=rules, within=factor)
    text = options.gemm or options.bmm or options.conv or ""
    shape = (parse_gemm if options.gemm else parse_bmm if options.bmm else parse_conv)(text)
    with show(f"bounding {text}"):
        return bound_shape(shape, buffers=sizes, word_bytes=word_bytes, rules=rules, within=factor)
