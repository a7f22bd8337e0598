"""The options of ``dfcompile bounds``."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.options import shared
from dfcompile.options.numbers import real, within
from dfcompile.options.option import option, table
from dfcompile.options.readers import joined
from dfcompile.options.words import FixedInput
from dfcompile.records import replace

ROWS = ("operator", "model")
FACTOR = "a number of 1 or more, such as 1.1"


@table
class BoundsOptions:
    """How little a model or a shape can move."""

    model: Path | None = option("A file.", is_argument=True)
    gemm: str | None = option("One product of matrices instead of a model.", metavar="M,K,N")
    bmm: str | None = option(
        "Products of H heads: each with operands of its own, or one B for all or for each of G groups.",
        more="Heads of a group share B, as in grouped queries.",
        metavar="H,M,K,N[,shared|,groups=G]",
    )
    conv: str | None = option(
        "One convolution: channels, filters, image of the result, window; then stride, dilation, pad, groups, batch.",
        more="`,stride=N,dilation=N,pad=N,groups=N,batch=N`; images have one, two or three axes.",
        metavar="C,K,PxQ,RxS[,stride=N…]",
    )
    chain: str | None = option(
        "Products one after the other: rows, columns of the input, and of each result.", metavar="M,W0,W1[,W2…]"
    )
    attention: str | None = option(
        "Attention: heads, queries, keys, columns; then columns of values (value=), groups of heads that share keys "
        "and values.",
        metavar="H,M,N,D[,groups=G…]",
    )
    buffers: str | None = option(
        "Buffer sizes: 64KiB,1MiB.",
        more="In bytes, or with `kB`/`KiB`, `MB`/`MiB`, `GB`/`GiB` (powers of 1,024); without, all powers of two of a "
        "shape, and 64 KiB to 16 MiB of a model.",
        read=joined,
        flags=("--buffer",),
        metavar="SIZE[,SIZE…]",
        is_repeatable=True,
    )
    per: str = option(
        "Tables of a model: operator, model; both by default.",
        read=joined,
        default="",
        metavar="NAME[,NAME]",
        complete=ROWS,
        is_repeatable=True,
    )
    word: int = option(
        "Size of a word, but of models.",
        more="There each operand and result has its own.",
        read=within(1, 16, "{} to {} bytes"),
        default=4,
        metavar="BYTES",
    )
    tiles: str = option(
        "Tile sizes that are tried: integer or divisors.",
        more="Those that divide, as the tool of [huang24] has them.",
        default="integer",
        metavar="NAME",
        complete=("integer", "divisors"),
    )
    halo: str = option(
        "What windows find again: true, or forget as Timeloop does.",
        default="true",
        metavar="NAME",
        complete=("true", "forget"),
    )
    first_read: bool = option("Count the first visit to a tile of the result as a read.")
    within: float | None = option(
        "Find the smallest buffer that moves at most so many times the least.",
        read=real(1, 10**300, FACTOR),
        metavar="FACTOR",
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.SHAPES
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(shared.SYSTEM, help="The machine whose SRAM is marked and whose die is shared.")

    def __post_init__(self) -> None:
        """Check what is asked.

        Raises:
            UserError: it is nothing, or several.
        """
        asked = {"MODEL": self.model, **{f"--{name}": text for name, text in self.shapes_asked.items()}}
        given = [name for name, value in asked.items() if value]
        if len(given) != 1:
            raise UserError(f"bounds: found {' and '.join(given) or 'nothing'} against one of {', '.join(asked)}")

    @property
    def shapes_asked(self) -> dict[str, str | None]:
        """The shapes that may be given instead of a model, as texts."""
        return {name: getattr(self, name) for name in ("gemm", "bmm", "conv", "chain", "attention")}


@table
class BoundsOutputs:
    """Where bounds are written, and how."""

    svg: Path | None = option("Draw traffic over buffer size there.", more="On logarithmic axes.")
    html: Path | None = shared.HTML
    format: str = shared.ROW_FORMAT
    output: Path | None = shared.OUTPUT
