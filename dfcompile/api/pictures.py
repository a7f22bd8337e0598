"""A picture as notebooks show it."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dfcompile.host.outputs import write_text


@dataclass(frozen=True, slots=True)
class Picture:
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
