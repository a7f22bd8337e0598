"""The options of ``dfcompile bounds``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfcompile.errors import UserError
from dfcompile.options import shared
from dfcompile.options.numbers import real, within
from dfcompile.options.option import option, table
from dfcompile.options.readers import joined, path, text
from dfcompile.options.words import FixedInput

ROWS = ("operator", "model")
FACTOR = "a number of 1 or more, such as 1.1"


def _shape(said: str, metavar: str, more: str = "") -> Any:
    return option(text, said, more=more, default=None, metavar=metavar)


def _name(said: str, *words: str, more: str = "") -> Any:
    return option(text, said, more=more, default=words[0], metavar="NAME", complete=words)


@table
class BoundsOptions:
    """How little a model or a shape can move."""

    model: Path | None = option(path, "A file.", default=None, is_argument=True, is_path=True)
    gemm: str | None = _shape("One product of matrices instead of a model.", "M,K,N")
    bmm: str | None = _shape(
        "Products of H heads: each with operands of its own, or one B for all or for each of G groups.",
        "H,M,K,N[,shared|,groups=G]",
        "Heads of a group share B, as in grouped queries.",
    )
    conv: str | None = _shape(
        "One convolution: channels, filters, image of the result, window; then stride, dilation, pad, groups, batch.",
        "C,K,PxQ,RxS[,stride=N…]",
        "`,stride=N,dilation=N,pad=N,groups=N,batch=N`; images have one, two or three axes.",
    )
    chain: str | None = _shape(
        "Products one after the other: rows, columns of the input, and of each result.", "M,W0,W1[,W2…]"
    )
    attention: str | None = _shape(
        "Attention: heads, queries, keys, columns; then columns of values (value=), groups of heads that share keys "
        "and values.",
        "H,M,N,D[,groups=G…]",
    )
    buffers: str | None = shared.list_option(
        joined,
        "Buffer sizes: 64KiB,1MiB.",
        "SIZE[,SIZE…]",
        more="In bytes, or with `kB`/`KiB`, `MB`/`MiB`, `GB`/`GiB` (powers of 1,024); without, all powers of two of a "
        "shape, and 64 KiB to 16 MiB of a model.",
        default=None,
        flags=("--buffer",),
    )
    per: str = shared.list_option(
        joined, "Tables of a model: operator, model; both by default.", "NAME[,NAME]", default="", complete=ROWS
    )
    word: int = option(
        within(1, 16, "{} to {} bytes"),
        "Size of a word, but of models.",
        more="There each operand and result has its own.",
        default=4,
        metavar="BYTES",
    )
    tiles: str = _name(
        "Tile sizes that are tried: integer or divisors.",
        "integer",
        "divisors",
        more="Those that divide, as the tool of [huang24] has them.",
    )
    halo: str = _name("What windows find again: true, or forget as Timeloop does.", "true", "forget")
    first_read: bool = shared.flag_option("Count the first visit to a tile of the result as a read.")
    within: float | None = option(
        real(1, 10**300, FACTOR),
        "Find the smallest buffer that moves at most so many times the least.",
        default=None,
        metavar="FACTOR",
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.shapes_option()
    dims: Mapping[str, int] = shared.dims_option()
    fixed_inputs: Mapping[str, FixedInput] = shared.fixed_inputs_option()
    system: str | None = shared.system_option("The machine whose SRAM is marked and whose die is shared.")

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

    svg: Path | None = shared.file_option("Draw traffic over buffer size there.", more="On logarithmic axes.")
    html: Path | None = shared.html_option()
    format: str = option(text, "table, json or csv.", default="table", metavar="NAME", complete=shared.ROW_FORMATS)
    output: Path | None = shared.output_option()
