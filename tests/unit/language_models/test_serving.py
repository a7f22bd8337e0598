"""What users of continuous batching see, against a simulation of every user and every step."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.serving import (
    Batching,
    Drafts,
    Lengths,
    Load,
    Served,
    decodes,
    served,
    served_separately,
    total,
)
from dfcompile.language_models.steps.batch import Batch, Sequences

ROUNDS = 12  # of every user; the first third is the start


def seconds(batch: Batch) -> float:
    """A step that reads weights, and computes or reads caches beside that."""
    decodes = [group for group in batch.groups if group.decodes]
    prompts = [group for group in batch.groups if not group.decodes]
    computed = 2e-5 * sum(group.new * group.count for group in prompts)
    cached = 1e-8 * sum(group.context * group.count for group in decodes)
    return 1e-3 + max(6e-3, computed) + cached + 1e-5 * sum(group.count for group in decodes)


class _User:
    def __init__(self, asked: float, draw: random.Random, load: Load) -> None:
        self.asked, self.draw, self.load = asked, draw, load
        self.seen: list[tuple[float, float, int]] = []  # first token, all later ones, and how many these are
        self.begin(asked)

    def begin(self, now: float) -> None:
        self.asked, self.made, self.first, self.read = now, 0, 0.0, self.load.cached
        kinds = self.load.requests
        (self.kind,) = self.draw.choices(kinds, [kind.weight for kind in kinds])

    def go_on(self, now: float) -> None:
        """Get the first token, or what a step makes of the drafts."""
        if not self.made:
            self.made, self.first = 1, now
        else:
            self.made += 1
            for _ in range(self.load.drafts.length):
                if self.draw.random() >= self.load.drafts.rate:
                    break
                self.made += 1
        if self.made >= self.kind.answer:
            self.seen.append((self.first - self.asked, now - self.first, self.kind.answer - 1))
            self.begin(now)


def spread_users(load: Load, found: Served) -> list[_User]:
    """Users that are not in step begin one after the other, spread over a turn."""
    answer = load.mean(lambda kind: kind.answer)
    spread = 0.0 if load.in_step else (found.ttft_s + answer * found.tpot_s) / load.users
    return [_User(number * spread, random.Random(number), load) for number in range(load.users)]


def means(users: list[_User], rounds: int) -> tuple[float, float, float]:
    """Return the mean times to the first token and per later token, and tokens per second of all users."""
    seen = [one for user in users for one in user.seen[rounds // 3 : rounds]]
    firsts, laters, tokens = (sum(column) for column in zip(*seen, strict=True))
    return firsts / len(seen), laters / tokens, len(users) * (tokens + len(seen)) / (firsts + laters)


def simulated(load: Load, rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Play every step, which takes whoever is there."""
    now, users = 0.0, spread_users(load, served(load, seconds))
    while any(len(user.seen) < rounds for user in users):
        here = [user for user in users if user.asked <= now]
        if not here:
            now = min(user.asked for user in users)
            continue
        making = [user for user in here if user.made]
        asking = sorted((user for user in here if not user.made), key=lambda user: (user.asked, users.index(user)))
        room = load.chunk - (len(making) * load.verified if load.batching is Batching.MIXED else 0)
        pieces: list[tuple[_User, int]] = []
        for user in asking:
            new = min(room, user.kind.prompt - user.read)
            if new > 0:
                pieces.append((user, new))
                room -= new
        if load.batching is Batching.APART and pieces:
            making = []
        now += seconds(_step(making, pieces))
        for user, new in pieces:
            user.read += new
        for user in making + [user for user, _ in pieces if user.read == user.kind.prompt]:
            user.go_on(now)
    return means(users, rounds)


def _step(making: list[_User], pieces: list[tuple[_User, int]]) -> Batch:
    decodes = [
        Sequences(user.kind.prompt + user.made - 1, user.load.verified, drafted=user.load.drafts.length)
        for user in making
    ]
    return Batch("step", (*(Sequences(user.read, new) for user, new in pieces), *decodes))


def simulated_separately(load: Load, found: Served, readers: int, rounds: int) -> tuple[float, float, float]:
    """Play one replica that decodes, and others that read prompts one by one and send what they cached."""
    now, users, free = 0.0, spread_users(load, found), [0.0] * readers
    ready: dict[_User, float] = {}
    while any(len(user.seen) < rounds for user in users):
        waiting = sorted((u for u in users if not u.made and u not in ready), key=lambda u: (u.asked, users.index(u)))
        for user in waiting:
            at = min(range(readers), key=free.__getitem__)
            if free[at] > now and user.asked > now:
                continue
            free[at] = max(free[at], user.asked) + seconds(Batch("prompt", (Sequences(0, user.kind.prompt),)))
            ready[user] = free[at] + SENDING
        for user in [user for user, when in ready.items() if when <= now]:
            user.go_on(ready.pop(user))
        making = [user for user in users if user.made]
        if not making:
            now = min(ready.values())
            continue
        now += seconds(_step(making, []))
        for user in making:
            user.go_on(now)
    return means(users, rounds)


LOADS = (
    Load(1, 500, 20, Batching.MIXED, 2048),
    Load(8, 1000, 64, Batching.MIXED, 2048),
    Load(16, 1000, 200, Batching.MIXED, 512),
    Load(24, 300, 100, Batching.MIXED, 256),
    Load(32, 2000, 50, Batching.MIXED, 1024),  # prompts queue
    Load(16, 1000, 64, Batching.APART, 8192),
    Load(40, 500, 300, Batching.APART, 8192),
    Load(16, 1000, 64, Batching.APART, 4096, in_step=True),
    Load(8, 1000, 64, Batching.MIXED, 16384, in_step=True),
    Load(32, 2000, 200, Batching.MIXED, 2048, in_step=True),
)


@pytest.mark.parametrize("load", LOADS)
def test_a_simulation_of_users_agrees_within_5_percent(load: Load) -> None:
    found = served(load, seconds)
    first, later, _ = simulated(load)

    assert found.tpot_s == pytest.approx(later, rel=0.05)
    if not found.is_queued:
        assert found.ttft_s == pytest.approx(first, rel=0.15)
    turn = first + (load.answer - 1) * later
    assert found.tokens_per_s(load) == pytest.approx(load.users * load.answer / turn, rel=0.05)


KINDS = Lengths(200, 40, 3), Lengths(2000, 80), Lengths(1000, 300)
MIXTURES = (
    Load(16, 0, 0, Batching.MIXED, 2048, kinds=KINDS),
    Load(24, 0, 0, Batching.APART, 2048, kinds=KINDS),
    Load(16, 1000, 200, Batching.MIXED, 2048, drafts=Drafts(3, 0.7)),
    Load(16, 1000, 200, Batching.APART, 1024, drafts=Drafts(4, 0.9)),
    Load(16, 1000, 100, Batching.MIXED, 1024, cached=600),
    Load(32, 2000, 100, Batching.APART, 2048, cached=1500),
    Load(32, 0, 0, Batching.MIXED, 1024, kinds=KINDS, cached=100, drafts=Drafts(2, 0.5)),  # prompts fill steps
)


@pytest.mark.parametrize("load", MIXTURES)
def test_lengths_caches_and_drafts_agree_with_the_simulation_within_5_percent(load: Load) -> None:
    found = served(load, seconds)
    _, later, rate = simulated(load, 40)

    assert found.tpot_s == pytest.approx(later, rel=0.05)
    assert found.tokens_per_s(load) == pytest.approx(rate, rel=0.05)


SENDING = 0.004
SEPARATE = (
    (Load(16, 1000, 100, Batching.SEPARATE), 1),
    (Load(32, 1000, 200, Batching.SEPARATE), 2),
    (Load(32, 2000, 50, Batching.SEPARATE), 1),  # prompts queue
    (Load(24, 1000, 150, Batching.SEPARATE, drafts=Drafts(3, 0.7)), 2),
    (Load(16, 0, 0, Batching.SEPARATE, kinds=KINDS), 3),
)


@pytest.mark.parametrize(("load", "readers"), SEPARATE)
def test_prompts_that_other_chips_read_agree_with_the_simulation_within_5_percent(load: Load, readers: int) -> None:
    reading = load.mean(lambda kind: seconds(Batch("prompt", (Sequences(0, kind.prompt),))))
    found = served_separately(load, seconds, reading, SENDING, readers)
    first, later, rate = simulated_separately(load, found, readers, 40)

    assert found.is_queued == (load.prompt == 2000)
    assert found.tpot_s == pytest.approx(later, rel=0.05)
    assert found.tokens_per_s(load) == pytest.approx(rate, rel=0.05)
    if len(load.requests) == 1 and not load.drafts.length:  # else users meet by chance before those that read
        assert found.ttft_s == pytest.approx(first, rel=0.1)


@pytest.mark.parametrize("load", [*LOADS, *MIXTURES])
def test_steps_of_a_turn_take_as_long_as_the_turn(load: Load) -> None:
    found = served(load, seconds)
    answer = load.mean(lambda kind: kind.answer)

    assert total(found.steps, seconds) == pytest.approx(found.ttft_s + (answer - 1) * found.tpot_s, rel=0.03)
    assert all(count >= 0 for _, count in found.steps)


def test_tokens_of_a_step_are_those_accepted_and_one_more() -> None:
    assert Drafts(0, 0.9).tokens == 1
    assert Drafts(4, 0.0).tokens == 1
    assert Drafts(4, 1.0).tokens == 5
    assert Drafts(3, 0.5).tokens == pytest.approx((1 - 0.5**4) / (1 - 0.5))


def test_who_decodes_is_of_a_length_as_often_as_its_answers_take_steps() -> None:
    groups = decodes(Load(30, 0, 0, kinds=(Lengths(10, 101, 1), Lengths(20, 51, 4))), 30)

    assert [(group.past, group.count) for group in groups] == [(59, 10), (44, 20)]


@settings(max_examples=100)
@given(
    users=st.integers(1, 64),
    prompt=st.integers(1, 4000),
    answer=st.integers(2, 400),
    batching=st.sampled_from(list(Batching)),
)
def test_more_users_wait_longer_and_are_never_faster_than_alone(
    users: int, prompt: int, answer: int, batching: Batching
) -> None:
    alone, one = served(Load(1, prompt, answer, batching), seconds), Load(users, prompt, answer, batching)
    found = served(one, seconds)

    assert found.tpot_s >= alone.tpot_s * (1 - 1e-12)
    assert found.ttft_s >= alone.ttft_s * (1 - 1e-12)
    assert found.tokens_per_s(one) > 0


@given(
    users=st.integers(1, 64),
    prompt=st.integers(1, 4000),
    answer=st.integers(2, 400),
    batching=st.sampled_from(list(Batching)),
    in_step=st.booleans(),
)
def test_no_step_has_more_sequences_than_users(
    users: int, prompt: int, answer: int, batching: Batching, in_step: bool
) -> None:
    found = served(Load(users, prompt, answer, batching, in_step=in_step), seconds)

    assert all(sum(group.count for group in batch.groups) <= users for batch, _ in found.steps)


def test_a_chunk_without_room_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="chunk: found 16 tokens against 31 decodes"):
        served(Load(32, 100, 10, Batching.MIXED, 16), seconds)
