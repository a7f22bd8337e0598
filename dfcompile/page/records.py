"""JSON of a report, asked by the names that lead to a figure; what a report has not is ``None``, empty or nothing."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.report.plain_values import Json


class Record(Struct, frozen=True):
    """An object of a report's JSON.

    Attributes:
        values: by name.
    """

    values: Mapping[str, Json]

    def at(self, path: str) -> Json:
        """Return what stands at the end of names joined by dots; ``None`` where one is missing."""
        value: Json = dict(self.values)
        for name in path.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    def number(self, path: str) -> float | int | None:
        """Return a number; ``None`` where there is none."""
        value = self.at(path)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, path: str) -> str:
        """Return a text; empty where there is none."""
        value = self.at(path)
        return value if isinstance(value, str) else ""

    def is_set(self, path: str) -> bool:
        """Return whether a value is true."""
        return self.at(path) is True

    def part(self, path: str) -> "Record":
        """Return a record; an empty one where there is none."""
        value = self.at(path)
        return Record(value if isinstance(value, dict) else {})

    def parts(self, path: str) -> tuple["Record", ...]:
        """Return the records of a list; none where there is no list."""
        return tuple(Record(value) for value in self.items(path) if isinstance(value, dict))

    def items(self, path: str) -> tuple[Json, ...]:
        """Return the values of a list; none where there is no list."""
        value = self.at(path)
        return tuple(value) if isinstance(value, list) else ()

    def texts(self, path: str) -> tuple[str, ...]:
        """Return the texts of a list, as far as its values are texts."""
        return tuple(value for value in self.items(path) if isinstance(value, str))

    def numbers(self, path: str) -> tuple[float | int, ...]:
        """Return the numbers of a list, as far as its values are numbers."""
        return tuple(value for value in self.items(path) if isinstance(value, int | float))

    def names(self, path: str) -> Mapping[str, str]:
        """Return the texts of a mapping by name, as far as its values are texts."""
        value = self.at(path)
        texts = value.items() if isinstance(value, dict) else ()
        return {name: text for name, text in texts if isinstance(text, str)}
