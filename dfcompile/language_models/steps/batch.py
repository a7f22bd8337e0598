"""The sequences of a step, and how many keys their queries see: exact integers."""

import re
from collections.abc import Iterator

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.language_models.model import Mask, Reach
from dfcompile.records import replace

LARGEST = 2**50  # tokens or sequences
MOST_CHUNKS = 1024  # of a prompt that are timed one by one
_PREFILL = re.compile(r"(\d+)(?:@(\d+))?(?:x(\d+))?")
_DECODE = re.compile(r"(\d+)(?:x(\d+))?")
_DERIVED = re.compile(r"(\d+):(\d+):(\d+)")


class Sequences(Struct, frozen=True):
    """Equal sequences of a step.

    Attributes:
        past: tokens before this step.
        new: tokens of this step.
        count: of sequences.
        head_rows: tokens of each for which logits are needed.
        drafted: of the new tokens, those that were drafted and are verified.
    """

    past: int
    new: int
    count: int = 1
    head_rows: int = 1
    drafted: int = 0

    @property
    def context(self) -> int:
        """Tokens after this step."""
        return self.past + self.new

    @property
    def decodes(self) -> bool:
        """Whether each makes one more token of those before, after those that were drafted."""
        return self.new == 1 + self.drafted and self.past > 0


class Batch(Struct, frozen=True):
    """All sequences of a step, and what the step is called.

    Attributes:
        name: of the step.
        groups: of equal sequences.
        notes: how it was derived.
        chunks: if it is the middle one of the steps that fill in a prompt: each of them, one after the other.
    """

    name: str
    groups: tuple[Sequences, ...]
    notes: tuple[str, ...] = ()
    chunks: tuple["Batch", ...] = ()

    @property
    def tokens(self) -> int:
        """New tokens."""
        return sum(group.new * group.count for group in self.groups)

    @property
    def sequences(self) -> int:
        """Number of sequences."""
        return sum(group.count for group in self.groups)

    @property
    def begun(self) -> int:
        """Sequences that begin with this step."""
        return sum(group.count for group in self.groups if not group.past)

    @property
    def head_rows(self) -> int:
        """Rows of logits."""
        return sum(group.head_rows * group.count for group in self.groups)

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence after the step."""
        return max(group.context for group in self.groups)

    @property
    def is_decode(self) -> bool:
        """Whether every sequence makes one token."""
        return all(group.decodes for group in self.groups)


def seen(reach: Reach, tokens: int) -> int:
    """Pairs of queries and keys of a sequence of so many tokens from its start: ``sum of what each sees``.

    >>> seen(Reach(), 4), seen(Reach(Mask.WINDOW, 2), 4), seen(Reach(Mask.CHUNK, 3), 4)
    (10, 7, 7)
    """
    extent = min(reach.extent, tokens) if reach.mask is not Mask.FULL else tokens
    if reach.mask is Mask.CHUNK and extent:
        whole, rest = divmod(tokens, reach.extent)
        return whole * _triangle(reach.extent) + _triangle(rest)
    return _triangle(extent) + (tokens - extent) * extent


def pairs(reach: Reach, past: int, new: int, *, causal: bool = True) -> int:
    """Pairs of queries and keys of the new tokens of one sequence.

    Args:
        reach: what a query sees.
        past: tokens before.
        new: tokens that ask.
        causal: whether a token sees none after it; encoders see all (`--attention full`).
    """
    if not causal or reach.mask is Mask.ENCODER:
        return new * live(reach, past, new)
    return seen(reach, past + new) - seen(reach, past)


def live(reach: Reach, past: int, new: int) -> int:
    """Tokens of one sequence whose keys and values any of the new tokens sees."""
    match reach.mask:
        case Mask.FULL:
            return past + new
        case Mask.WINDOW:
            return past + new - max(0, past - reach.extent + 1)
        case Mask.CHUNK:
            return past + new - past // reach.extent * reach.extent
        case Mask.ENCODER:
            return reach.extent


def _triangle(count: int) -> int:
    return count * (count + 1) // 2


def prefill_batch(text: str, *, all_rows: bool = False) -> Batch:
    """Return the batch of ``8192``, ``8192x4`` or ``1024x2,8192``: prompts and how many of each.

    Raises:
        UserError: it is not written so.
    """
    parsed = _parsed("--prefill", text, _PREFILL, "TOKENS, TOKENSxBATCH or TOKENS@PASTxBATCH")
    groups = (_prompt("--prefill", found) for found in parsed)
    rows = (replace(group, head_rows=group.new) if all_rows else group for group in groups)
    return Batch(f"prefill {text}", tuple(rows))


def decode_batch(text: str) -> Batch:
    """Return the batch of ``8448x256``: contexts, the new token included, and how many sequences of each.

    Raises:
        UserError: it is not written so.
    """
    groups = (
        Sequences(_amount("--decode", found[1]) - 1, 1, _amount("--decode", found[2] or "1"))
        for found in _parsed("--decode", text, _DECODE, "CONTEXT or CONTEXTxBATCH")
    )
    return Batch(f"decode {text}", tuple(groups))


def chunked_batch(text: str) -> Batch:
    """Return the batch of a step that fills a chunk with a piece of a prompt and with decodes.

    ``241@3975+8448x15`` says both: 241 tokens after 3975, and 15 sequences that have 8448 with their new token.
    ``8192:512:256`` derives them: prompts of 8192, answers of 512, chunks of 256 tokens. The share of decodes is that
    of the answer, their context its middle, and the piece stands in the middle of its prompt.

    Raises:
        UserError: it is not written so, or the chunk has no room for a token of the prompt.
    """
    derived = _DERIVED.fullmatch(text)
    if derived is not None:
        return _derived(text, *(_amount("--chunked", amount) for amount in derived.groups()))
    piece, plus, decodes = text.partition("+")
    found = _PREFILL.fullmatch(piece.strip())
    if found is None:
        raise UserError(f"--chunked: found {text!r} against NEW@PAST+CONTEXTxBATCH or PROMPT:ANSWER:CHUNK")
    first = replace(_prompt("--chunked", found), head_rows=0)
    return Batch(f"chunked {text}", (first, *(decode_batch(decodes).groups if plus else ())))


def chunks_of(prompt: int, piece: int) -> tuple[Sequences, ...]:
    """Return the pieces in which a prompt is filled in; the last one has a row of logits.

    Their pairs add up to those of the whole prompt, exactly.
    """
    starts = range(0, prompt, piece)
    return tuple(Sequences(at, min(piece, prompt - at), head_rows=int(at + piece >= prompt)) for at in starts)


def _derived(text: str, prompt: int, answer: int, chunk: int) -> Batch:
    decodes = chunk * answer // (prompt + answer)
    piece = chunk - decodes
    if not 0 < piece <= prompt:
        raise UserError(f"--chunked: found {piece} tokens of a prompt in a chunk against 1 to {prompt}")
    beside = (Sequences(prompt + answer // 2 - 1, 1, decodes),) if decodes else ()
    groups = (Sequences((prompt - piece) // 2, piece, head_rows=0), *beside)
    pieces = -(-prompt // piece)
    mean = seen(Reach(), prompt) / prompt
    note = f"chunked: {pieces} pieces of {piece} tokens per prompt; a token sees {mean:.1f} tokens in the mean"
    if pieces > MOST_CHUNKS:
        untimed = f"chunked: {pieces} pieces are not timed one by one, which is done of at most {MOST_CHUNKS}"
        return Batch(f"chunked {text}", groups, (note, untimed))
    numbered = enumerate(chunks_of(prompt, piece), start=1)
    chunks = (Batch(f"chunk {number} of {text}", (one, *beside)) for number, one in numbered)
    return Batch(f"chunked {text}", groups, (note,), tuple(chunks))


def _parsed(option: str, text: str, pattern: re.Pattern[str], form: str) -> Iterator[re.Match[str]]:
    for part in text.split(","):
        found = pattern.fullmatch(part.strip())
        if found is None:
            raise UserError(f"{option}: found {part!r} against {form}")
        yield found


def _prompt(option: str, found: re.Match[str]) -> Sequences:
    return Sequences(int(found[2] or 0), _amount(option, found[1]), _amount(option, found[3] or "1"))


def _amount(option: str, text: str) -> int:
    found = int(text) if len(text) < 20 else LARGEST + 1
    if not 1 <= found <= LARGEST:
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise UserError(f"{option}: found {shown} against 1 to 2^50")
    return found
