"""Random volumes: a walk that keeps or multiplies the volume from one level of a graph to the next."""

from fractions import Fraction
from random import Random

from dfcompile.canonical_dag.forms.reader import LARGEST_NODES
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError

FIRST_VOLUME = 2048
_FACTORS = tuple(Fraction(factor) for factor in ("1/4", "1/3", "1/2", "2", "3", "4"))
_LARGEST_FACTOR = 1000


def volume_walk(steps: int, first: int, seed: int | None) -> list[int]:
    """Return ``steps`` volumes, the first one given; all equal without a seed.

    With probability 1/3 a volume is that of the step before, otherwise that times one of 1/4, 1/3, 1/2, 2, 3, 4,
    rounded down, at least 1 and at most 1000 times the first [dematteis23, section 6].
    """
    if seed is None:
        return [first] * steps
    random = Random(seed)  # noqa: S311  # reproducible, not secret
    volumes = [first]
    while len(volumes) < steps:
        volume = volumes[-1]
        if random.randrange(3) > 0:
            volume = int(volume * random.choice(_FACTORS))
        volumes.append(min(max(volume, 1), _LARGEST_FACTOR * first))
    return volumes[:steps]


def check_sizes(generator: str, least: int, tasks: int, **sizes: int) -> None:
    """Check what the user asked for, before anything is built.

    Raises:
        UserError: a size below the least or out of all proportion, or more tasks than a graph may have.
    """
    for name, size in sizes.items():
        if size < least:
            raise UserError(f"{generator}: {name} {size} against {least} or more")
        if size * _LARGEST_FACTOR > LARGEST_VOLUME:
            raise UserError(f"{generator}: {name} {size} against at most {LARGEST_VOLUME // _LARGEST_FACTOR}")
    if tasks > LARGEST_NODES:
        raise UserError(f"{generator}: {tasks} tasks against at most {LARGEST_NODES}")
