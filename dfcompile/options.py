"""What the user asked for: the options of a run, and their text forms on the command line."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum, unique
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, assert_never

from msgspec import Struct, field

from dfcompile.expansion_names import is_within

Fifos = Literal["in-flight", "rule", "minimal"] | int

OVERLAPS: Final = ("perfect", "none", "compute-memory")

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

    MAKESPAN = "makespan"  # of the schedule
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


class Options(Struct, frozen=True):
    """A run of the main job.

    Attributes:
        model: file to read.
        pes: numbers of processing elements, each gives a result.
        expand: rules whose Cartesian product is compared; empty: none, all is chosen or as published.
        passes: names of lowering passes to apply, in order.
        shapes: sizes of the model's inputs by input name, for models that leave them open.
        dims: sizes of symbolic dimensions of the inputs by their names.
        fixed_inputs: values that inputs have in every run, by input name.
        volumes: of the edges between tasks: each task's own share, or the whole array.
        partition: name of the partitioner that fills spatial blocks.
        effort: how much the partitioner tries.
        barrier: whether a block waits for the end of the one before; ``None``: as the partitioner has it.
        max_fifo: elements that a FIFO may hold; ``None``: as many as it takes.
        timing: how the times of a schedule are found.
        granularity: of the tasks: ``declared``, ``pieces=N``, ``max-tasks=N`` or ``split=N``; ``None``: as declared, or
            chosen where expansions are.
        own_granularity: the same of single operators, such as ``conv1:pieces=64``.
        automatic: whether expansions, as far as ``expand`` leaves them open, and granularity are chosen.
        is_quick: whether what was chosen for the makespan is compared with few uniform choices.
        aim: by what they are.
        system: name or file of the machine; ``None``: the canonical machine.
        overlap: of compute, memory and network time of a configuration.
        solver: name of the solver for the configurations.
        chips: numbers of chips at hand, each gives results; a mapping uses as many of them as give the least time.
        verify: whether to run the lowered model against a reference.
        repeat: how often the model runs, on inputs of their own, iterations beside each other.
    """

    model: Path
    pes: tuple[int, ...]
    expand: tuple[ExpansionRule, ...] = ()
    passes: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    volumes: Volumes = Volumes.EXACT
    partition: str = "best"
    effort: Effort = Effort.QUICK
    barrier: bool | None = None
    timing: Timing = Timing.EXACT
    granularity: str | None = None
    own_granularity: tuple[str, ...] = ()
    automatic: bool = False
    is_quick: bool = False
    aim: Aim = Aim.MAKESPAN
    system: str | None = None
    overlap: str = "perfect"
    solver: str = "dp"
    verify: bool = False
    chips: tuple[int, ...] = (1,)
    max_fifo: int | None = None
    dims: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    repeat: int = 1
    fixed_inputs: Mapping[str, FixedInput] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def combinations(self) -> tuple[tuple[Choice, ...], ...]:
        """The Cartesian product of the rules: one choice per rule in each combination, in the order given."""
        named = [[Choice(rule.op_type, name, rule.origin) for name in rule.names] for rule in self.expand]
        return tuple(product(*named))


@contextmanager
def show_nothing(_title: str) -> Iterator[None]:
    """Show no progress."""
    yield
