"""What a run is at, for whoever watches it: its stage, and how much of the work in it is done.

Work says how far it is from where it is done, however deep, so that nothing has to be handed through what lies between.
Nothing that is computed depends on it, and where nobody watches nothing is counted.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
_NEARLY = 0.9


class Work:
    """Work of which it is known how much it is.

    Attributes:
        note: what else is worth knowing, such as a gap.
    """

    def __init__(self, whole: float) -> None:
        """Begin.

        Args:
            whole: how many parts it has, in any unit.
        """
        self._whole, self._done, self._since = whole, 0.0, time.perf_counter()
        self._furthest = 0.0
        self._next = 1.0  # parts that the work in it is
        self._unseen: tuple[float, float] | None = None  # when a part began that says nothing, and how long it may take
        self.note = ""

    def is_at(self, done: float, note: str = "") -> None:
        """Say how many parts are done by now."""
        self._done, self.note = min(done, self._whole), note

    def add(self, parts: float = 1.0) -> None:
        """Say that some more parts are done."""
        self._done = min(self._done + parts, self._whole)

    @contextmanager
    def part(self, parts: float, *, is_unseen: bool = False) -> Iterator[None]:
        """Let the body do some more parts.

        Args:
            parts: how many.
            is_unseen: whether nothing is heard of it until it is over, as of a compiler: then it is taken to be as
                fast as what was done before.
        """
        self._next = parts
        if is_unseen and self._done:
            now = time.perf_counter()
            self._unseen = now, (now - self._since) / self._done * parts
        try:
            yield
        finally:
            self._next, self._unseen = 1.0, None
            self.add(parts)

    def share(self, within: float) -> float:
        """Return how much of it is done, with so much of the next part; never less than before."""
        unseen = self._unseen
        inside = within if unseen is None else _likely(time.perf_counter() - unseen[0], unseen[1])
        self._furthest = max(self._furthest, min((self._done + inside * self._next) / self._whole, 1.0))
        return self._furthest

    def left_s(self) -> float | None:
        """Return how long the rest takes if it goes on as it has; ``None`` as long as nothing is done."""
        if not self._furthest:
            return None
        return (time.perf_counter() - self._since) * (1 - self._furthest) / self._furthest


def _likely(gone_s: float, expected_s: float) -> float:
    """Return how much is likely done of what was expected to take so long: nearly all of it then, never all.

    >>> _likely(1.0, 4.0), _likely(4.0, 4.0), _likely(8.0, 4.0)
    (0.225, 0.9, 0.95)
    """
    if gone_s < expected_s:
        return _NEARLY * gone_s / expected_s
    return 1 - (1 - _NEARLY) * expected_s / gone_s if gone_s else 0.0


class Watch:
    """Knows what a run is at; another thread may ask it at any time."""

    def __init__(self, begun: Callable[[str], None], ended: Callable[[], None] = lambda: None) -> None:
        """Begin with nothing.

        Args:
            begun: is told each stage as it begins.
            ended: is told when the last of them is over that were within each other.
        """
        self._begun, self._ended = begun, ended
        self._titles: list[str] = []
        self._works: list[Work] = []

    @property
    def title(self) -> str:
        """Name of the innermost stage; empty between stages."""
        return "".join(self._titles[-1:])

    @property
    def works(self) -> tuple[Work, ...]:
        """What is being done, the whole first, then the part of it that is on, and so on."""
        return tuple(self._works)

    def share(self) -> float | None:
        """Return how much is done of the whole, if that is known."""
        found = None
        for work in reversed(self.works):
            found = work.share(found or 0.0)
        return found

    def left_s(self) -> float | None:
        """Return how long the rest of the whole takes, if that is known; as of the last `share`."""
        return next((work.left_s() for work in self.works[:1]), None)

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Name what the body does."""
        self._titles.append(title)
        try:
            self._begun(title)
            yield
        finally:
            self._titles.pop()
            if not self._titles:
                self._ended()

    @contextmanager
    def work(self, work: Work) -> Iterator[None]:
        """Let the body do some work."""
        self._works.append(work)
        try:
            yield
        finally:  # a loop that was left is tidied up late, after what it was in
            if work in self._works:
                del self._works[self._works.index(work) :]


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Tell somebody what the body is at, in this thread."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def stage(title: str) -> Iterator[None]:
    """Name what the body does."""
    watch = _WATCH.get()
    told: AbstractContextManager[None] = nullcontext() if watch is None else watch.stage(title)
    with told:
        yield


@contextmanager
def work_of(whole: float) -> Iterator[Work]:
    """Give what is told how many parts are done.

    Args:
        whole: how many there are, in any unit; 0: nobody knows.
    """
    watch, work = _WATCH.get(), Work(whole)
    told: AbstractContextManager[None] = nullcontext() if watch is None or whole <= 0 else watch.work(work)
    with told:
        yield work


def counted(items: Collection[Item], weight: Callable[[Item], float] | None = None) -> Iterator[Item]:
    """Yield items, and say how many of them are done; each is as much work as its weight, or as the others."""
    if _WATCH.get() is None or len(items) < 2:
        return iter(items)
    return _counted(items, [1.0] * len(items) if weight is None else [weight(item) for item in items])


def as_they_come(items: Iterable[Item], whole: int) -> Iterator[Item]:
    """Yield items that are made one by one, and say how many of the whole are done."""
    with work_of(whole) as work:
        for item in items:
            yield item
            work.add()


def _counted(items: Iterable[Item], weights: list[float]) -> Iterator[Item]:
    with work_of(sum(weights)) as work:
        for item, parts in zip(items, weights, strict=True):
            with work.part(parts):
                yield item
