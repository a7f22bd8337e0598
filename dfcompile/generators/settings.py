"""Arguments of generators, as a command line asks for them."""

from msgspec import Struct

Argument = int | str


class Setting(Struct, frozen=True):
    """An argument of a generator: a whole number, or a word.

    Attributes:
        name: as the function has it; on the command line with ``-`` for ``_``.
        text: help.
        is_required: whether it has to be given.
        default: what holds if it is not given; ``None``: the generator finds a value.
        choices: the words to choose from, if any.
    """

    name: str
    text: str
    is_required: bool = True
    default: Argument | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_word(self) -> bool:
        """Whether it is a word and no whole number."""
        return bool(self.choices) or isinstance(self.default, str)
