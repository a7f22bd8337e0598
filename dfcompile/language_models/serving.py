"""Users at once on one replica: continuous batching, with what prefills of others cost between two tokens.

Every user asks anew as soon as the answer is complete, and a step makes tokens of everybody whose prompt was read: one,
or with drafts as many as are accepted in the mean. Users go in groups whose prompts are read together: of one user each
where users are spread in time, as they are with lengths of all kinds; of as many as a chunk holds where all began at
once with equal lengths, for they finish together and stay together. An answer takes ``later`` steps after its first
token. Meanwhile the prompts of the other groups are read, in three ways:

* apart: steps that read prompts make no tokens: ``step = d + (groups - 1) prefill / later``, where d is the time
  of a step of decodes alone. Users who began at once also come back at once: all groups are read before anybody goes
  on, so that a user waits for half of them before the first token, and for half of them after it.
* mixed: a step has ``chunk`` tokens at most, those of each who decodes and pieces of prompts. A group takes s steps.
  While ``groups s <= s + later``, pieces never meet: ``step = d + (groups - 1) s (m - d) / later``, where
  m is the time of a mixed step. Beyond that steps are filled: a prompt takes ``prompt / room`` of them, and if that
  is too many as well, every step is mixed and prompts queue: ``step = m``, and the first token comes when the rest of
  a turn is over.
* separate: other chips read them, one prompt after the other on each replica there, and send what they cached:
  ``step = d``. If a turn is shorter than they need for the prompts of all users, prompts queue.

Of several lengths, times to read and steps are the means over requests, and who decodes is of a length as often as
such answers take steps.
"""

import math
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.steps.batch import Batch, Sequences

Seconds = Callable[[Batch], float]  # of a step
Steps = tuple[tuple[Batch, float], ...]  # each with how many of it there are
_ROUNDS = 16  # until the number of users who decode settles


class Batching(StrEnum):
    """How prompts are read while others' tokens are made."""

    APART = "apart"  # in steps of their own
    MIXED = "mixed"  # in pieces beside decodes
    SEPARATE = "separate"  # on other chips


class Lengths(Struct, frozen=True):
    """Tokens of a request's prompt and answer, and how often such requests are among all."""

    prompt: int
    answer: int
    weight: int = 1


class Drafts(Struct, frozen=True):
    """Speculative decoding: so many tokens are drafted per step, each accepted at a rate if those before it were.

    >>> Drafts(4, 0.8).tokens, Drafts(0, 0.0).tokens
    (3.3616, 1.0)
    """

    length: int = 0
    rate: float = 0.0

    @property
    def tokens(self) -> float:
        """Tokens of a sequence and step in the mean: those accepted and one more [leviathan23]."""
        return round(math.fsum(self.rate**number for number in range(self.length + 1)), 12)


class Load(Struct, frozen=True):
    """What a replica serves.

    Attributes:
        users: at once.
        prompt: tokens of each prompt.
        answer: tokens of each answer.
        batching: how prompts are read.
        chunk: tokens of a step at most.
        in_step: whether all began at once with equal lengths, and so stay together.
        kinds: of requests, if they have several lengths; ``prompt`` and ``answer`` are not looked at then.
        cached: tokens at the start of every prompt that are in the cache already.
        drafts: of each step.
    """

    users: int
    prompt: int
    answer: int
    batching: Batching = Batching.MIXED
    chunk: int = 8192
    in_step: bool = False
    kinds: tuple[Lengths, ...] = ()
    cached: int = 0
    drafts: Drafts = Drafts()

    @property
    def requests(self) -> tuple[Lengths, ...]:
        """All kinds of requests."""
        return self.kinds or (Lengths(self.prompt, self.answer),)

    def mean(self, of: Callable[[Lengths], float]) -> float:
        """Return the mean over requests."""
        kinds = self.requests
        return math.fsum(kind.weight * of(kind) for kind in kinds) / sum(kind.weight for kind in kinds)

    @property
    def later(self) -> float:
        """Steps of an answer after its first token, in the mean."""
        return self.mean(lambda kind: kind.answer - 1) / self.drafts.tokens

    @property
    def verified(self) -> int:
        """Tokens of a step of one who decodes."""
        return 1 + self.drafts.length

    @property
    def room(self) -> int:
        """Tokens of prompts in a step.

        Raises:
            InfeasibleError: there are none beside the decodes.
        """
        beside = (self.users - 1) * self.verified if self.batching is Batching.MIXED else 0
        if self.chunk - beside < 1:
            raise InfeasibleError(f"chunk: found {self.chunk} tokens against {beside} decodes and a piece")
        return self.chunk - beside

    @property
    def together(self) -> int:
        """Users whose prompts are read together."""
        return min(self.users, max(1, self.room // (self.prompt - self.cached))) if self.in_step else 1

    @property
    def pieces(self) -> float:
        """Steps that the prompts of a group take, in the mean."""
        return self.mean(lambda kind: -(-(kind.prompt - self.cached) // self.room))


class Served(Struct, frozen=True):
    """What users see.

    Attributes:
        ttft_s: from the request to the first token.
        tpot_s: between two later tokens, in the mean.
        decode_s: of a step without a prompt.
        is_queued: whether prompts wait for each other.
        steps: of the replica while every user has one turn, each with how many of it there are.
    """

    ttft_s: float
    tpot_s: float
    decode_s: float
    is_queued: bool
    steps: Steps

    def tokens_per_s(self, load: Load) -> float:
        """Of all users of the replica: tokens of answers."""
        answer = load.mean(lambda kind: kind.answer)
        return load.users * answer / (self.ttft_s + (answer - 1) * self.tpot_s)


def decodes(load: Load, users: int, *, at_end: bool = False) -> tuple[Sequences, ...]:
    """Return so many sequences in the middle of their answers, or at their end."""
    taken = [kind.weight * (kind.answer - 1) for kind in load.requests]
    if not sum(taken):
        taken = [kind.weight for kind in load.requests]
    groups, given, sofar = [], 0, 0
    for kind, share in zip(load.requests, taken, strict=True):
        sofar += share
        count = (2 * users * sofar + sum(taken)) // (2 * sum(taken)) - given  # rounded, and all of them together
        given += count
        made = kind.answer - 1 if at_end else kind.answer // 2 - 1
        if count:
            one = Sequences(kind.prompt + made, load.verified, count, load.verified, load.drafts.length)
            groups.append(one)
    return tuple(groups)


def readings(load: Load, beside: int) -> Steps:
    """Return the steps that read the prompts of a group beside so many decodes, in the mean."""
    whole = sum(kind.weight for kind in load.requests)
    found = []
    for kind in load.requests:
        for start in range(load.cached, kind.prompt, load.room):
            new = min(load.room, kind.prompt - start)
            piece = Sequences(start, new, load.together, head_rows=int(start + new == kind.prompt))
            found.append((Batch("prompts", (piece, *decodes(load, beside))), kind.weight / whole))
    return tuple(found)


def total(steps: Steps, cost: Callable[[Batch], float]) -> float:
    """Return what steps cost together, such as seconds or joules."""
    return math.fsum(count * cost(batch) for batch, count in steps)


def served(load: Load, seconds: Seconds) -> Served:
    """Return what users see, from times of steps.

    Raises:
        InfeasibleError: a chunk has no room for a piece beside the decodes, or what times steps raises it.
    """
    later, pieces = load.later, load.pieces
    groups, alone = -(-load.users // load.together), Batch("decode", decodes(load, load.users))
    decode = seconds(alone)
    if load.batching is Batching.APART:
        read = readings(load, 0)
        reading = total(read, seconds)
        before, after = ((groups + 1) / 2, (groups - 1) / 2) if load.in_step else (1, groups - 1)
        steps = *_times(read, groups), (alone, later)
        return _seen(load, before * reading, decode, after * reading, steps)
    if groups * pieces <= pieces + later:
        read = readings(load, load.users - load.together)
        reading = total(read, seconds)
        steps = *_times(read, groups), (alone, pieces + later - groups * pieces)
        return _seen(load, reading, decode, (groups - 1) * max(0.0, reading - pieces * decode), steps)
    return _filled(load, seconds, decode)


def _times(steps: Steps, count: float) -> Steps:
    return tuple((batch, share * count) for batch, share in steps)


def _seen(load: Load, ttft_s: float, decode: float, others_s: float, steps: Steps) -> Served:
    """Return what users see whose answers take longer by what the prompts of others take."""
    step = decode + (others_s / load.later if load.later else 0.0)
    return Served(ttft_s, step / load.drafts.tokens, decode, is_queued=False, steps=steps)


def _filled(load: Load, seconds: Seconds, decode: float) -> Served:
    """Return what users see where pieces of several prompts fill steps.

    As many decode as finish ``later`` steps after they were read: ``later room / prompt``, where they leave
    ``room = chunk - their tokens``; of the others as many are read as fit there.
    """
    later, prompt, users = load.later, round(load.mean(lambda kind: kind.prompt)) - load.cached, load.users
    beside = min(users - 1, int(later * load.chunk // (prompt + later * load.verified)))
    room = load.chunk - beside * load.verified
    prompts, new = min(users - beside, max(1, room // prompt)), min(room, prompt)
    piece = Sequences(load.cached + (prompt - new) // 2, new, prompts, head_rows=int(new == prompt))
    full = Batch("filled", (piece, *decodes(load, beside)))
    mixed, steps = seconds(full), prompt / (prompts * new)
    if users * steps > steps + later:
        first = max((users * steps - later) * mixed, math.ceil(steps) * mixed)
        return Served(first, mixed / load.drafts.tokens, decode, is_queued=True, steps=((full, users * steps),))
    others, alone = (users - 1) * max(0.0, steps * (mixed - decode)), Batch("decode", decodes(load, users))
    run = (full, users * steps), (alone, steps + later - users * steps)
    return _seen(load, math.ceil(steps) * mixed, decode, others, run)


def served_separately(load: Load, seconds: Seconds, reading: float, sending: float, readers: float) -> Served:
    """Return what users see whose prompts other chips read.

    Args:
        load: of a replica that decodes.
        seconds: of steps there.
        reading: seconds of a prompt on a replica that reads, in the mean.
        sending: seconds until what it cached is where it decodes.
        readers: replicas that read per replica that decodes.

    Raises:
        InfeasibleError: what times steps raises it.
    """
    first, users = reading + sending, load.users
    for _ in range(_ROUNDS):
        batch = Batch("decode", decodes(load, users))
        decode = seconds(batch)
        turn = max(first + load.later * decode, load.users * reading / readers)
        settled = min(load.users, max(1, round(load.users * load.later * decode / turn)))
        if settled == users:
            break
        users = settled
    stay = load.later * decode
    is_queued = turn > first + stay
    return Served(turn - stay, decode / load.drafts.tokens, decode, is_queued, ((batch, turn / decode),))
