"""A place in a configuration, and what is wrong there."""

from collections.abc import Iterable

from msgspec import Struct

from dfcompile.errors import UserError, nearest

_LONGEST = 60  # characters of a key or a value that an error shows
_MOST_WORDS = 8


class Place(Struct, frozen=True):
    """Where a value stands.

    Attributes:
        where: the configuration's file.
        path: the keys that lead to the value, with dots between them.
    """

    where: str
    path: str = "quantization_config"

    def inside(self, key: object) -> "Place":
        """Return the place of a key of the mapping that stands here."""
        return Place(self.where, f"{self.path}.{_cut(str(key))}")

    def wrong(self, found: object, expected: str) -> UserError:
        """Return the error that another value is expected."""
        return UserError(f"{self.where}: key '{self.path}': found {_cut(repr(found))} against {expected}")

    def unknown(self, found: str, known: Iterable[str]) -> UserError:
        """Return the error that a word is none of those that are known; a few are shown, or the nearest one."""
        words = tuple(known)
        shown = ", ".join(words if len(words) <= _MOST_WORDS else (*words[:_MOST_WORDS], "…"))
        return self.wrong(found, f"{shown}{self.nearest(found, words)}")

    @staticmethod
    def nearest(word: str, known: Iterable[str]) -> str:
        """Return the nearest word as a hint, if there is one: messages stay short, so that paths in them stay whole."""
        hint = nearest(word, known)
        return hint if "did you mean" in hint else ""

    def unmodelled(self, what: str) -> UserError:
        """Return the error that a key says what has no figures here."""
        return UserError(
            f"{self.where}: key '{self.path}': {what}: not modelled (--dtype says what each class is in, once the key "
            "is removed)"
        )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
