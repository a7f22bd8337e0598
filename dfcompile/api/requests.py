"""What a caller asks for, in Python's terms or the command line's, as the options of a run. Imports nothing heavy."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from dfcompile.errors import UserError, nearest
from dfcompile.expansion_names import PUBLISHED, QUICK, word_of
from dfcompile.option_texts import (
    parse_chips,
    parse_count,
    parse_dims,
    parse_expand,
    parse_fixed_inputs,
    parse_max_fifo,
    parse_partitions,
    parse_passes,
    parse_pes,
    parse_shapes,
)
from dfcompile.options import OVERLAPS, Aim, Effort, FixedInput, Options, Timing, Volumes

Counts: TypeAlias = int | str | Iterable[int | str]  # 16, [16, 128] or "16,128"
Names: TypeAlias = str | Iterable[str]  # "mv", ["mv", "op"] or "mv,op"
Rules: TypeAlias = Mapping[str, Names] | Iterable[str]  # {"MatMul": ["mv", "op"]} or ["MatMul=mv,op"]
Dims: TypeAlias = Mapping[str, int] | Iterable[str]  # {"batch": 8} or ["batch=8"]
Shapes: TypeAlias = Mapping[str, Sequence[int]] | Iterable[str]  # {"x": (1, 28)} or ["x=1x28"]
FixedInputs: TypeAlias = Mapping[str, object] | Iterable[str]  # {"use_cache": False} or ["use_cache=false"]
File: TypeAlias = str | PathLike[str]

Word = TypeVar("Word", bound=str)
NO_SHAPES: Mapping[str, Sequence[int]] = MappingProxyType({})
NO_DIMS: Mapping[str, int] = MappingProxyType({})
NO_FIXED_INPUTS: Mapping[str, object] = MappingProxyType({})


def compile_options(
    model: File,
    *,
    pes: Counts,
    expand: Rules = (),
    passes: Names = (),
    shapes: Shapes = NO_SHAPES,
    volumes: str = "exact",
    partition: str = "best",
    effort: str = "quick",
    barrier: bool | None = None,
    timing: str = "exact",
    granularity: Names | None = None,
    system: File | None = None,
    chips: Counts = 1,
    overlap: str = "perfect",
    solver: str = "dp",
    verify: bool = False,
    max_fifo: int | str | None = None,
    dims: Dims = NO_DIMS,
    objective: str = "makespan",
    repeat: int | str = 1,
    fixed_inputs: FixedInputs = NO_FIXED_INPUTS,
) -> Options:
    """Return the options of a run; see `dfcompile.api.compile_model.compile_model`.

    Raises:
        UserError: a number is not positive, a name is given twice, a rule has another form.
    """
    named = _joined(passes)
    rules = rules_of(expand)
    aim = one_of("objective", objective, tuple(Aim))
    word = word_of(rules)
    if aim is not Aim.MAKESPAN and word == PUBLISHED:
        raise UserError(f"--objective: found {aim} beside rules or published, without --expand auto, which it is about")
    every, single = _split_granularity((granularity,) if isinstance(granularity, str) else granularity or ())
    return Options(
        model=Path(model),
        pes=parse_pes(_joined(pes)),
        expand=parse_expand(rules),
        automatic=word != PUBLISHED,
        is_quick=word == QUICK,
        aim=aim,
        passes=parse_passes(named) if named else (),
        shapes=parse_shapes(_shapes(shapes)),
        volumes=one_of("volumes", volumes, tuple(Volumes)),
        partition=partition,
        effort=one_of("effort", effort, tuple(Effort)),
        barrier=barrier,
        timing=one_of("timing", timing, tuple(Timing)),
        granularity=every,
        own_granularity=single,
        system=None if system is None else str(system),
        overlap=one_of("overlap", overlap, OVERLAPS),
        solver=solver,
        verify=verify,
        chips=parse_chips(_joined(chips)),
        max_fifo=None if max_fifo is None else parse_max_fifo(str(max_fifo)),
        dims=parse_dims(_dims(dims)),
        repeat=parse_count("--repeat", str(repeat)),
        fixed_inputs=fixed_inputs_of(fixed_inputs),
    )


def counts_of(pes: Counts) -> tuple[int, ...]:
    """Return numbers of processing elements.

    Raises:
        UserError: not positive integers, or one of them twice.
    """
    return parse_pes(_joined(pes))


def partitions_of(partition: Names) -> tuple[str, ...]:
    """Return names of partitioners.

    Raises:
        UserError: an empty name or one name twice.
    """
    return parse_partitions(_joined(partition))


def one_of(what: str, word: str, known: Sequence[Word]) -> Word:
    """Return a word of a small set.

    Raises:
        UserError: it is none of them.
    """
    for one in known:
        if word == one:
            return one
    raise UserError(f"--{what} {word!r}: unknown{nearest(str(word), map(str, known))}")


def _split_granularity(texts: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """Split what is said of all operators, if anything is, from what is said of single ones.

    Raises:
        UserError: the former is said twice, or the latter twice of one operator.

    >>> _split_granularity(["pieces=64", "conv1:declared"])
    ('pieces=64', ('conv1:declared',))
    """
    every = [text for text in texts if ":" not in text]
    single = [text for text in texts if ":" in text]
    origins = [text.rpartition(":")[0] for text in single]
    if len(every) > 1:
        raise UserError(f"granularity: {' and '.join(every)} against one of all operators")
    twice = next((origin for place, origin in enumerate(origins) if origin in origins[:place]), None)
    if twice is not None:
        raise UserError(f"granularity: {twice!r} given twice against once")
    return every[0] if every else None, tuple(single)


def _joined(given: Counts | Names) -> str:
    return ",".join(map(str, given)) if isinstance(given, Iterable) and not isinstance(given, str) else str(given)


def rules_of(rules: Rules) -> tuple[str, ...]:
    """Return values of ``--expand`` as the command line has them.

    >>> rules_of({"MatMul": ["mv", "op"]})
    ('MatMul=mv,op',)
    """
    if isinstance(rules, Mapping):
        return tuple(f"{key}={_joined(names)}" for key, names in rules.items())
    return (rules,) if isinstance(rules, str) else tuple(rules)


def _shapes(shapes: Shapes) -> tuple[str, ...]:
    if isinstance(shapes, Mapping):
        return tuple(f"{name}={'x'.join(map(str, sizes))}" for name, sizes in shapes.items())
    return (shapes,) if isinstance(shapes, str) else tuple(shapes)


def _dims(dims: Dims) -> tuple[str, ...]:
    if isinstance(dims, Mapping):
        return tuple(f"{name}={size}" for name, size in dims.items())
    return (dims,) if isinstance(dims, str) else tuple(dims)


def fixed_inputs_of(fixed_inputs: FixedInputs) -> Mapping[str, FixedInput]:
    """Return values that inputs have in every run.

    Raises:
        UserError: a value is no number, truth value or array of these, or a text of another form.

    >>> fixed_inputs_of({"sizes": [1, -1]})["sizes"].shape
    (2,)
    """
    if isinstance(fixed_inputs, Mapping):
        return MappingProxyType({name: _fixed(name, value) for name, value in fixed_inputs.items()})
    return parse_fixed_inputs((fixed_inputs,) if isinstance(fixed_inputs, str) else fixed_inputs)


def _fixed(name: str, value: object) -> FixedInput:
    import numpy as np

    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"input {name!r}: found {type(value).__name__} against a number or an array") from error
    numbers = tuple(array.ravel().tolist())
    if not all(isinstance(number, bool | int | float) for number in numbers):
        raise UserError(f"input {name!r}: found {type(value).__name__} of {array.dtype} against numbers")
    return FixedInput(numbers, array.shape or None)
