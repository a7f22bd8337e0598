"""Users at once on one replica: continuous batching, with what prefills of others cost between two tokens.

Every user asks anew as soon as the answer is complete, and a step makes one token of everybody whose prompt was read.
Users go in groups whose prompts are read together: of one user each where users are spread in time, as they are with
lengths of all kinds; of as many as a chunk holds where all began at once with equal lengths, for they finish together
and stay together. Between the first and the last token of a user the prompts of the other groups are read, in two ways:

* apart: steps that read prompts make no tokens: ``tpot = d + (groups - 1) prefill / (answer - 1)``, where d is the time
  of a step of decodes alone. Users who began at once also come back at once: all groups are read before anybody goes
  on, so that a user waits for half of them before the first token, and for half of them after it.
* mixed: a step has ``chunk`` tokens at most, one of each who decodes and pieces of prompts. A group takes s steps.
  While ``groups s <= s + answer - 1``, pieces never meet: ``tpot = d + (groups - 1) s (m - d) / (answer - 1)``, where
  m is the time of a mixed step. Beyond that steps are filled: a prompt takes ``prompt / room`` of them, and if that
  is too many as well, every step is mixed and prompts queue: ``tpot = m``, and the first token comes when the rest of
  a turn is over.
"""

import math
from collections.abc import Callable
from enum import StrEnum, unique

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.steps.batch import Batch, Sequences

Seconds = Callable[[Batch], float]  # of a step


@unique
class Batching(StrEnum):
    """How prompts are read while others' tokens are made."""

    APART = "apart"  # in steps of their own
    MIXED = "mixed"  # in pieces beside decodes


class Load(Struct, frozen=True):
    """What a replica serves.

    Attributes:
        users: at once.
        prompt: tokens of each prompt.
        answer: tokens of each answer.
        batching: how prompts are read.
        chunk: tokens of a step at most.
        in_step: whether all began at once with equal lengths, and so stay together.
    """

    users: int
    prompt: int
    answer: int
    batching: Batching = Batching.MIXED
    chunk: int = 8192
    in_step: bool = False

    @property
    def room(self) -> int:
        """Tokens of prompts in a step.

        Raises:
            InfeasibleError: there are none beside the decodes.
        """
        room = self.chunk - (self.users - 1 if self.batching is Batching.MIXED else 0)
        if room < 1:
            raise InfeasibleError(f"chunk: found {self.chunk} tokens against {self.users - 1} decodes and a piece")
        return room

    @property
    def together(self) -> int:
        """Users whose prompts are read together."""
        return min(self.users, max(1, self.room // self.prompt)) if self.in_step else 1

    @property
    def pieces(self) -> int:
        """Steps that the prompts of a group take."""
        return -(-self.prompt // self.room)


class Served(Struct, frozen=True):
    """What users see.

    Attributes:
        ttft_s: from the request to the first token.
        tpot_s: between two later tokens, in the mean.
        decode_s: of a step without a prompt.
        is_queued: whether prompts wait for each other.
    """

    ttft_s: float
    tpot_s: float
    decode_s: float
    is_queued: bool

    def tokens_per_s(self, load: Load) -> float:
        """Of all users of the replica: tokens of answers."""
        return load.users * load.answer / (self.ttft_s + (load.answer - 1) * self.tpot_s)


def decodes(load: Load, users: int) -> tuple[Sequences, ...]:
    """Return so many sequences in the middle of their answers."""
    return (Sequences(load.prompt + load.answer // 2 - 1, 1, users),) if users else ()


def reading_s(load: Load, seconds: Seconds, beside: int) -> float:
    """Return the seconds of the steps that read the prompts of a group beside so many decodes."""
    taken = []
    for start in range(0, load.prompt, load.room):
        new = min(load.room, load.prompt - start)
        piece = Sequences(start, new, load.together, head_rows=int(start + new == load.prompt))
        taken.append(seconds(Batch("prompts", (piece, *decodes(load, beside)))))
    return math.fsum(taken)


def served(load: Load, seconds: Seconds) -> Served:
    """Return what users see, from times of steps.

    Raises:
        InfeasibleError: a chunk has no room for a piece beside the decodes, or what times steps raises it.
    """
    later, pieces = load.answer - 1, load.pieces
    groups, decode = -(-load.users // load.together), seconds(Batch("decode", decodes(load, load.users)))
    if load.batching is Batching.APART:
        reading = reading_s(load, seconds, 0)
        before, after = ((groups + 1) / 2, (groups - 1) / 2) if load.in_step else (1, groups - 1)
        return Served(before * reading, decode + (after * reading / later if later else 0.0), decode, is_queued=False)
    if groups * pieces <= pieces + later:
        reading = reading_s(load, seconds, load.users - load.together)
        extra = max(0.0, reading - pieces * decode)
        return Served(reading, decode + ((groups - 1) * extra / later if later else 0.0), decode, is_queued=False)
    return _filled(load, seconds, decode)


def _filled(load: Load, seconds: Seconds, decode: float) -> Served:
    """Return what users see where pieces of several prompts fill steps.

    As many decode as finish ``answer - 1`` steps after they were read: ``(answer - 1) room / prompt``, where they leave
    ``room = chunk - those``.
    """
    later = load.answer - 1
    beside = min(load.users - 1, later * load.chunk // (load.prompt + later))
    room = load.chunk - beside
    prompts, new = max(1, room // load.prompt), min(room, load.prompt)
    piece = Sequences((load.prompt - new) // 2, new, prompts, head_rows=int(new == load.prompt))
    mixed, steps = seconds(Batch("filled", (piece, *decodes(load, beside)))), load.prompt / (prompts * new)
    if load.users * steps > steps + later:
        first = (load.users * steps - later) * mixed
        return Served(max(first, math.ceil(steps) * mixed), mixed, decode, is_queued=True)
    extra = max(0.0, steps * (mixed - decode))
    return Served(math.ceil(steps) * mixed, decode + (load.users - 1) * extra / later, decode, is_queued=False)
