"""Fields of a configuration: read by type, filled in from the class's defaults, and noted where they were."""

from collections.abc import Mapping, Sequence

from dfcompile.errors import UserError

LARGEST = 2**62  # of any extent: beyond it is a slip, not a model


class Fields:
    """The fields of one configuration.

    Collects notes of what was filled in; `notes` has them when all has been read.

    Attributes:
        name: of the configuration.
        family: of models that it is of.
        where: names the configuration in errors.
    """

    def __init__(
        self, values: Mapping[str, object], defaults: Mapping[str, object], name: str, family: str, where: str
    ) -> None:
        self._values = values
        self._defaults = defaults
        self.name = name
        self.family = family
        self.where = where
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken for fields that the configuration leaves out."""
        return tuple(dict.fromkeys(self._notes))

    def count(self, *names: str, derived: int | None = None, least: int = 1) -> int:
        """Return a whole number under the first of some names that the file has.

        Args:
            names: of the field, in order of preference.
            derived: what the class makes of other fields if the file has none, or null.
            least: that is possible.

        Raises:
            UserError: it is missing without a default, no whole number, or too small or large.
        """
        found = self._found(names)
        if found is None:
            found = self._filled(names, derived)
        if found is None:
            raise UserError(f"{self.where}: key {names[0]!r} is missing, and its class has no default")
        return self._whole(names[0], found, least)

    def optional(self, *names: str, least: int = 1) -> int:
        """Return a whole number, or 0 where the file says null, or says nothing and the class has none.

        Raises:
            UserError: it is no whole number, or too small or large.
        """
        is_stated = any(name in self._values for name in names)
        found = self._found(names) if is_stated else self._filled(names, None)
        return 0 if found is None else self._whole(names[0], found, least)

    def flag(self, name: str) -> bool:
        """Return a truth value.

        Raises:
            UserError: it is none.
        """
        found = self._values.get(name)
        if found is None:
            found = self._filled((name,), None)
        if not isinstance(found, bool):
            raise self.wrong(name, f"{_shown(found)} against true or false")
        return found

    def listed(self, name: str) -> Sequence[object] | None:
        """Return a list, or none where the file has none.

        Raises:
            UserError: it is something else.
        """
        found = self._values.get(name)
        if found is None:
            return None
        if not isinstance(found, list):
            raise self.wrong(name, f"{_shown(found)} against a list")
        return found

    def layers_in(self, name: str) -> frozenset[int] | None:
        """Return a list of numbers of layers, or none where the file has none.

        Raises:
            UserError: it is no list of whole numbers.
        """
        found = self.listed(name)
        if found is None:
            return None
        wrong = next((one for one in found if not isinstance(one, int) or isinstance(one, bool)), None)
        if wrong is not None:
            raise self.wrong(name, f"{_shown(wrong)} in it against numbers of layers")
        return frozenset(one for one in found if isinstance(one, int))

    def per_layer(self, name: str, layers: int) -> tuple[str, ...] | None:
        """Return a list of one word per layer, or none where the file has none.

        Raises:
            UserError: it is no list of words, or of another length.
        """
        found = self.listed(name)
        if found is None:
            return None
        if len(found) != layers:
            raise self.wrong(name, f"{len(found)} entries against {layers} layers")
        return tuple(str(entry) for entry in found)

    def has(self, name: str) -> bool:
        """Return whether the file has the field, and not as null."""
        return self._values.get(name) is not None

    def wrong(self, name: str, found: str) -> UserError:
        """Return the error that a field is wrong, with what was found against what."""
        return UserError(f"{self.where}: key {name!r}: found {found}")

    def note(self, text: str) -> None:
        """Note something that was assumed."""
        self._notes.append(text)

    def _found(self, names: Sequence[str]) -> object:
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def _filled(self, names: Sequence[str], derived: int | None) -> object:
        name = next((name for name in names if self._defaults.get(name) is not None), None)
        if derived is not None:
            self._notes.append(f"{names[0]} = {derived}: left out, derived as its class does")
            return derived
        if name is None:
            return None
        default = self._defaults[name]
        self._notes.append(f"{names[0]} = {_shown(default)}: left out, default of its class")
        return default

    def _whole(self, name: str, found: object, least: int) -> int:
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(name, f"{_shown(found)} against a whole number")
        if not least <= found <= LARGEST:
            raise self.wrong(name, f"{found} against {least} to 2^62")
        return found


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
