"""Values of options: the words that a user may say, and what is said of operators and inputs."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum, unique
from fractions import Fraction
from itertools import product
from typing import Final, Literal, TypeAlias, assert_never

from msgspec import Struct

from dfcompile.expansion_names import PUBLISHED, is_pattern, is_within

Fifos = Literal["in-flight", "rule", "minimal"] | int

ShowStage: TypeAlias = Callable[[str], AbstractContextManager[None]]  # shows progress while a stage lasts

Number: TypeAlias = bool | int | float

LARGEST_COUNT = 10**9  # of processing elements, of elements along a dimension

DEFAULT_TRIES: Final = 200  # schedules of an exploration: half a minute for models of ten thousand tasks


@unique
class Volumes(StrEnum):
    """What an edge between two tasks carries."""

    EXACT = "exact"  # what that task moves
    ARRAY = "array"  # the size of the whole array between them: the convention of the published table

    @property
    def are_whole_arrays(self) -> bool:
        """Whether an edge carries all of the array."""
        match self:
            case Volumes.ARRAY:
                return True
            case Volumes.EXACT:
                return False
        assert_never(self)


@unique
class Timing(StrEnum):
    """How the times of a schedule are found."""

    STEADY = "steady"  # from mean streaming intervals, with unlimited FIFOs [dematteis23, section 5.2]
    EXACT = "exact"  # of a replay element by element, with the FIFOs of the schedule

    @property
    def is_exact(self) -> bool:
        """Whether times are those of each element."""
        match self:
            case Timing.EXACT:
                return True
            case Timing.STEADY:
                return False
        assert_never(self)


@unique
class Effort(StrEnum):
    """How much is tried for a short schedule, in tries, never in seconds."""

    QUICK = "quick"  # one partition
    DEFAULT = "default"  # as many as leave a model of a thousand tasks well below a second
    HIGH = "high"  # some thousands


@unique
class Objective(StrEnum):
    """By what one of several schedules is chosen."""

    MAKESPAN = "makespan"  # the shortest, among equals the one with the smallest FIFOs
    FIFO = "fifo"  # the smallest FIFOs among those that take little more than the shortest


@unique
class Aim(StrEnum):
    """What an automatic choice makes small; among equals the makespan."""

    TIME = "time"  # of the schedule on the machine, memory included
    MAKESPAN = "makespan"  # of the schedule, if memory cost no time
    IO = "io"  # bytes of all edges that touch a buffer
    ENERGY = "energy"  # of the mapping
    COST = "cost"  # of the mapping's machine


DEFAULT_SLACK: Final = Fraction(1, 10)  # of the makespan of the shortest schedule


class FixedInput(Struct, frozen=True):
    """The value that an input of a model has in every run.

    Attributes:
        numbers: its elements in row order, or one that all of them are.
        shape: ``None``: as the model has it.
    """

    numbers: tuple[Number, ...]
    shape: tuple[int, ...] | None = None


class ExpansionRule(Struct, frozen=True):
    """Expansions to compare for an operator type, or for one operator of the user's model."""

    op_type: str
    names: tuple[str, ...]
    origin: str = ""

    @property
    def key(self) -> str:
        """What the rule is about, such as ``MatMul`` or ``conv1:MatMul``."""
        return f"{self.origin}:{self.op_type}" if self.origin else self.op_type

    @property
    def choices(self) -> tuple["Choice", ...]:
        """One per name."""
        return tuple(Choice(self.op_type, name, self.origin) for name in self.names)


class Choice(Struct, frozen=True):
    """One name taken from an `ExpansionRule`; without origin it holds for every operator of the type.

    Attributes:
        op_type: of the operators; empty: of any type that has an expansion of the name.
        name: of the expansion.
        origin: a user's operator, or a pattern of names such as ``layer.*.attn``; empty: all.
    """

    op_type: str
    name: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.name}"

    @property
    def key(self) -> str:
        """What the choice is made for, such as ``MatMul``, ``conv1:MatMul`` or ``conv1``."""
        return ":".join(part for part in (self.origin, self.op_type) if part)

    def fit(self, op_type: str, origin: str, step: str = "") -> int | None:
        """Return how well the choice fits an operator, the smaller the better; ``None``: it is about others.

        A name, of the user's operator or of a step of it, fits better than a pattern, which fits better than a choice
        for all operators of the type.
        """
        if self.op_type not in ("", op_type):
            return None
        if not self.origin:
            return 2
        if self.origin in (origin, step):
            return 0 if self.origin == origin else -1
        return 1 if is_within(self.origin, origin) else None


class Choices:
    """Choices by the operators that they may be about: of thousands few are about one."""

    def __init__(self, choices: Iterable[Choice]) -> None:
        self._all = tuple(choices)
        self._named: dict[str, list[int]] = {}
        self._of_many = []  # of all operators, or of those whose names are like a pattern
        for place, choice in enumerate(self._all):
            if choice.origin and not is_pattern(choice.origin):
                self._named.setdefault(choice.origin, []).append(place)
            else:
                self._of_many.append(place)

    def about(self, origin: str, step: str = "") -> tuple[Choice, ...]:
        """Return the choices that may be about an operator, in their order: that `Choice.fit` of no other one does.

        Args:
            origin: the user's operator.
            step: of it.
        """
        if not self._named:
            return self._all
        modules = (origin[: sign.start()] for sign in re.finditer(r"[./]", origin))
        places = (place for name in dict.fromkeys((origin, step, *modules)) for place in self._named.get(name, ()))
        return tuple(self._all[place] for place in sorted((*self._of_many, *places)))


class Expand(Struct, frozen=True):
    """How operators are expanded.

    Attributes:
        rules: whose Cartesian product is compared.
        rest: what becomes of operators that no rule is about: ``auto``, ``quick`` or ``published``.
    """

    rules: tuple[ExpansionRule, ...] = ()
    rest: str = PUBLISHED

    @property
    def chooses(self) -> bool:
        """Whether expansions, as far as the rules leave them open, and granularity are chosen."""
        return self.rest != PUBLISHED

    @property
    def combinations(self) -> tuple[tuple[Choice, ...], ...]:
        """The Cartesian product of the rules: one choice per rule in each combination, in the order given."""
        return tuple(product(*(rule.choices for rule in self.rules)))


class Granularities(Struct, frozen=True):
    """What is said of the granularity of tasks.

    Attributes:
        every: of all operators: ``declared``, ``pieces=N``, ``max-tasks=N`` or ``split=N``; ``None``: as declared, or
            chosen where expansions are.
        own: the same of single operators, such as ``conv1:pieces=64``.
    """

    every: str | None = None
    own: tuple[str, ...] = ()


class MicroBatches(Struct, frozen=True):
    """In which parts a model runs, one after the other.

    Attributes:
        dimension: by whose size parts are told apart; ``auto``: it is chosen, ``whole``: there is one part.
        size: of the dimension in a part; 0 where none is given.
        at_once: parts, each on a group of processing elements.
    """

    dimension: str = "auto"
    size: int = 0
    at_once: int = 1

    def __str__(self) -> str:
        groups = f"/{self.at_once}" if self.at_once > 1 else ""
        return f"{self.dimension}={self.size}{groups}" if self.size else self.dimension

    @property
    def is_chosen(self) -> bool:
        """Whether the size is chosen for each number of processing elements."""
        return self == MicroBatches()


@contextmanager
def show_nothing(_title: str) -> Iterator[None]:
    """Show no progress."""
    yield
