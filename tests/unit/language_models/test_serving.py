"""What users of continuous batching see, against a simulation of every user and every step."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.serving import Batching, Load, served
from dfcompile.language_models.steps.batch import Batch

ROUNDS = 12  # of every user; those before the last SEEN are the start
SEEN = 4


def seconds(batch: Batch) -> float:
    """A step that reads weights, and computes or reads caches beside that."""
    decodes = [group for group in batch.groups if group.decodes]
    prompts = [group for group in batch.groups if not group.decodes]
    computed = 2e-5 * sum(group.new * group.count for group in prompts)
    cached = 1e-8 * sum(group.context * group.count for group in decodes)
    return 1e-3 + max(6e-3, computed) + cached + 1e-5 * sum(group.count for group in decodes)


class _User:
    def __init__(self, asked: float) -> None:
        self.asked, self.read, self.made, self.first = asked, 0, 0, 0.0
        self.seen: list[tuple[float, float]] = []


def simulated(load: Load) -> tuple[float, float]:
    """Return the mean times to the first token and per later token: each step takes whoever is there.

    Users that are not in step begin one after the other, spread over a turn.
    """
    users, now = [], 0.0
    turn = served(load, seconds)
    spread = 0.0 if load.in_step else (turn.ttft_s + load.answer * turn.tpot_s) / load.users
    users = [_User(number * spread) for number in range(load.users)]
    while any(len(user.seen) < ROUNDS for user in users):
        here = [user for user in users if user.asked <= now]
        if not here:
            now = min(user.asked for user in users)
            continue
        making = [user for user in here if user.made]
        asking = sorted((user for user in here if not user.made), key=lambda user: (user.asked, users.index(user)))
        room = load.chunk - (len(making) if load.batching is Batching.MIXED else 0)
        pieces: list[tuple[_User, int]] = []
        for user in asking:
            new = min(room, load.prompt - user.read)
            if new > 0:
                pieces.append((user, new))
                room -= new
        if load.batching is Batching.APART and pieces:
            making = []
        now += seconds(_step(load, making, pieces))
        for user, new in pieces:
            user.read += new
        for user in making + [user for user, _ in pieces if user.read == load.prompt]:
            user.made += 1
            if user.made == 1:
                user.first = now
            if user.made == load.answer:
                later = max(1, load.answer - 1)
                user.seen.append((user.first - user.asked, (now - user.first) / later))
                user.asked, user.read, user.made = now, 0, 0
    seen = [one for user in users for one in user.seen[ROUNDS - SEEN : ROUNDS]]
    return sum(one[0] for one in seen) / len(seen), sum(one[1] for one in seen) / len(seen)


def _step(load: Load, making: list[_User], pieces: list[tuple[_User, int]]) -> Batch:
    from dfcompile.language_models.steps.batch import Sequences

    decodes = [Sequences(load.prompt + user.made - 1, 1) for user in making]
    return Batch("step", (*(Sequences(user.read, new) for user, new in pieces), *decodes))


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
    first, later = simulated(load)

    assert found.tpot_s == pytest.approx(later, rel=0.05)
    if not found.is_queued:
        assert found.ttft_s == pytest.approx(first, rel=0.15)
    turn = first + (load.answer - 1) * later
    assert found.tokens_per_s(load) == pytest.approx(load.users * load.answer / turn, rel=0.05)


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


def test_a_chunk_without_room_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="chunk: found 16 tokens against 31 decodes"):
        served(Load(32, 100, 10, Batching.MIXED, 16), seconds)
