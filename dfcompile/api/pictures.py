"""A picture as notebooks show it."""

from os import PathLike
from pathlib import Path

from msgspec import Struct

from dfcompile.host.outputs import write_text


class Picture(Struct, frozen=True):
    """A drawing as SVG text."""

    svg: str

    def save(self, file: str | PathLike[str]) -> None:
        """Write it to a file.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(self.svg, Path(file))

    def _repr_svg_(self) -> str:
        return self.svg
