"""The fields of one configuration: read by name, with the defaults of its class, and refused where they are wrong."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from dfcompile.errors import UserError

LARGEST = 2**62  # of any extent: beyond it is a slip, not a model


class Fields(Struct):
    """The fields of one configuration.

    Collects notes of what was filled in.

    Attributes:
        values: of the configuration's file.
        defaults: of the class, for fields that the file leaves out.
        name: of the configuration.
        family: of models that it is of.
        where: names the configuration in errors.
        taken: notes so far.
    """

    values: Mapping[str, object]
    defaults: Mapping[str, object]
    name: str
    family: str
    where: str
    taken: list[str] = field(default_factory=list)

    def count(self, *names: str, derived: int | None = None, least: int = 1) -> int:
        """Return a whole number under the first of some names that the file has.

        Args:
            names: of the field, in order of preference.
            derived: what the class makes of other fields if the file has none, or null.
            least: that is possible.

        Raises:
            UserError: it is missing without a default, no whole number, or too small or large.
        """
        found = self._found(names, derived)
        if found is None:
            raise UserError(f"{self.where}: key {names[0]!r} is missing, and its class has no default")
        return self._whole(names[0], found, least)

    def optional(self, *names: str, least: int = 1) -> int:
        """Return a whole number, or 0 where the file says null, or says nothing and the class has none.

        Raises:
            UserError: it is no whole number, or too small or large.
        """
        is_null = any(name in self.values for name in names) and all(self.values.get(name) is None for name in names)
        found = None if is_null else self._found(names)
        return 0 if found is None else self._whole(names[0], found, least)

    def flag(self, *names: str) -> bool:
        """Return a truth value, under the first of some names that the file has.

        Raises:
            UserError: it is none.
        """
        found = self._found(names)
        if not isinstance(found, bool):
            raise self.wrong(names[0], f"{_shown(found)} against true or false")
        return found

    def stated(self, name: str) -> object:
        """Return what the file says under a name, or else the default of its class; None: neither does."""
        return self.values.get(name, self.defaults.get(name))

    def has_default(self, *names: str) -> bool:
        """Return whether the class has a default under one of some names."""
        return any(self.defaults.get(name) is not None for name in names)

    def whole(self, name: str) -> int:
        """Return a whole number, which may be below 0.

        Raises:
            UserError: it is none.
        """
        return self._whole(name, self._found((name,)), -LARGEST)

    def listed(self, name: str) -> Sequence[object] | None:
        """Return a list, or none where the file has none.

        Raises:
            UserError: it is something else.
        """
        found = self.values.get(name)
        if found is None:
            return None
        if not isinstance(found, list):
            raise self.wrong(name, f"{_shown(found)} against a list")
        return found

    def nested(self, name: str) -> Mapping[str, object]:
        """Return a mapping, an empty one where the file has none.

        Raises:
            UserError: it is something else.
        """
        found = self.stated(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.wrong(name, f"{_shown(found)} against a mapping")
        return found

    def layers_in(self, name: str) -> frozenset[int] | None:
        """Return a list of numbers of layers, or none where the file has none.

        Raises:
            UserError: it is no list of whole numbers.
        """
        found = self.listed(name)
        for one in found or ():
            if type(one) is not int:
                raise self.wrong(name, f"{_shown(one)} in it against numbers of layers")
        return None if found is None else frozenset(one for one in found if isinstance(one, int))

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

    def dividing(self, name: str, kv_heads: int, heads: int, of: str = "num_attention_heads") -> int:
        """Return heads of keys and values, which a name has, and which divide the query heads of another.

        Raises:
            UserError: they do not.
        """
        if heads % kv_heads:
            raise self.wrong(name, f"{kv_heads} heads that do not divide the {heads} of {of}")
        return kv_heads

    def experts(self, counts: Sequence[str], chosen: Sequence[str]) -> tuple[int, int]:
        """Return how many experts there are, and how many a token chooses, each under the first name that there is.

        Raises:
            UserError: as `count`, or there are fewer than are chosen.
        """
        count, some = self.count(*counts), self.count(*chosen)
        if some > count:
            raise self.wrong(chosen[0], f"{some} of {count} experts")
        return count, some

    def wrong(self, name: str, found: str) -> UserError:
        """Return the error that a field is wrong, with what was found against what."""
        return UserError(f"{self.where}: key {name!r}: found {found}")

    def _found(self, names: Sequence[str], derived: int | None = None) -> object:
        stated = next((self.values[name] for name in names if self.values.get(name) is not None), None)
        if stated is not None:
            return stated
        name = next((name for name in names if self.defaults.get(name) is not None), None)
        if derived is not None:
            self.taken.append(f"{names[0]} = {derived}: left out, derived as its class does")
            return derived
        if name is None:
            return None
        default = self.defaults[name]
        self.taken.append(f"{names[0]} = {_shown(default)}: left out, default of its class")
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
