"""A mutant: one small change of the package that makes it wrong."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module.

    Attributes:
        file: the module, below the package's folder.
        original: text that is there exactly once.
        replacement: what stands in its place.
    """

    file: str
    original: str
    replacement: str

    @property
    def name(self) -> str:
        """A short text that tells mutants apart."""
        return f"{self.file}: {_one_line(self.original)} -> {_one_line(self.replacement)}"

    def applied(self, package: Path) -> str:
        """Return the text of the changed module.

        Args:
            package: folder of the package.

        Raises:
            LookupError: the original text is not there exactly once.
        """
        text = (package / self.file).read_text()
        found = text.count(self.original)
        if found != 1:
            raise LookupError(f"mutant {self.name}: text found {found} times against once (write the mutant anew)")
        return text.replace(self.original, self.replacement)


def _one_line(text: str) -> str:
    return " ".join(text.split())
