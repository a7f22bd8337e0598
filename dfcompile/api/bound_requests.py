"""What a caller asks of I/O bounds: single shapes and buffer sizes as texts. Imports nothing heavy."""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.io_bounds.einsum.convolution import Convolution
from dfcompile.io_bounds.einsum.plain import Attention, PlainEinsum, gemm
from dfcompile.io_bounds.einsum.window import WindowAxis

LARGEST: Final = 2**63 - 1
LEAST_WORDS: Final = 3  # of a buffer: one of each operand and of the result
_OF_CONVOLUTIONS: Final = MappingProxyType({"stride": 1, "dilation": 1, "pad": 0, "groups": 1, "batch": 1})


class Chain(Struct, frozen=True):
    """Products one after the other, ``X[rows, w0] W1[w0, w1] …``.

    Attributes:
        rows: of all tensors but the weights.
        widths: of the input and of each result.
    """

    rows: int
    widths: tuple[int, ...]

    def __str__(self) -> str:
        return f"chain {','.join(map(str, (self.rows, *self.widths)))}"


class GroupedAttention(Struct, frozen=True):
    """Attention of several groups of heads, each with keys and values of its own.

    Attributes:
        heads: of all groups.
        groups: equal ones.
        of_group: the queries of its heads are rows of one product.
    """

    heads: int
    groups: int
    of_group: Attention

    def __str__(self) -> str:
        rows = self.of_group.rows * self.groups // self.heads
        shared = "" if self.groups == self.heads else f",groups={self.groups}"
        return f"attention {self.heads},{rows},{self.of_group.keys},{self.of_group.width}{shared}"


CountedShape = tuple[int, PlainEinsum | Convolution]  # equal operations, and what each computes


def check_buffers(sizes: Sequence[int], word_bytes: int) -> tuple[int, ...]:
    """Return sizes of buffers, in bytes.

    Raises:
        UserError: one is below three words.
    """
    for size in sizes:
        if size < LEAST_WORDS * word_bytes:
            raise UserError(f"--buffer: found {size} bytes against at least {LEAST_WORDS} words of {word_bytes} bytes")
    return tuple(sizes)


def parse_gemm(text: str) -> CountedShape:
    """Read ``M,K,N``.

    Raises:
        UserError: another form, or a size that is not from 1 to 2**63 - 1.
    """
    m, k, n = _sizes("--gemm", text.split(","), "M,K,N", 3)
    return 1, gemm(m, k, n)


def parse_bmm(text: str) -> CountedShape:
    """Read ``H,M,K,N``: heads with operands of their own; ``,shared`` or ``,groups=G``: one B for all, for each group.

    Rows of all heads that share B are rows of one product.

    Raises:
        UserError: another form, a size out of range, or groups that do not divide the heads.
    """
    form = "H,M,K,N or H,M,K,N,shared or H,M,K,N,groups=G"
    words = text.split(",")
    heads, m, k, n = _sizes("--bmm", words[:4], form, 4)
    match words[4:]:
        case []:
            groups = heads
        case ["shared"]:
            groups = 1
        case [last] if last.startswith("groups="):
            (groups,) = _sizes("--bmm", [last.removeprefix("groups=")], "groups=G")
        case _:
            raise UserError(f"--bmm: found {text!r} against {form}")
    return groups, gemm(_in_groups("--bmm", heads, groups) * m, k, n)


def parse_chain(text: str) -> Chain:
    """Read ``M,W0,W1[,W2…]``: rows, columns of the input, and of each layer's result.

    Raises:
        UserError: another form, or a size out of range.
    """
    words = _words("--chain", text, 3, "M,W0,W1[,W2…]: rows, and columns of the input and of each result")
    rows, *widths = _sizes("--chain", words, "N")
    return Chain(rows, tuple(widths))


def parse_attention(text: str) -> GroupedAttention:
    """Read ``H,M,N,D[,value=V][,groups=G]``: heads, queries, keys, columns of both; columns of values; groups of heads.

    Raises:
        UserError: another form, a size out of range, or groups that do not divide the heads.
    """
    form = "H,M,N,D[,value=V,groups=G]"
    words = _words("--attention", text, 4, form)
    heads, queries, keys, width = _sizes("--attention", words[:4], form)
    named = _named("--attention", words[4:], form, {"value": width, "groups": heads})
    groups = named["groups"]
    rows = queries * _in_groups("--attention", heads, groups)
    return GroupedAttention(heads, groups, Attention(rows, keys, width, named["value"]))


def parse_conv(text: str) -> CountedShape:
    """Read ``C,K,PxQ,RxS`` with ``,stride=1,dilation=1,pad=0,groups=1,batch=1`` where they are others.

    Channels and filters are those of all groups; the image has as many axes as the window, and is the result's.

    Raises:
        UserError: another form, a size out of range, or groups that do not divide the channels.
    """
    form = "C,K,PxQ,RxS[,stride=N,dilation=N,pad=N,groups=N,batch=N]"
    words = _words("--conv", text, 4, form)
    channels, filters = _sizes("--conv", words[:2], form)
    outputs, taps = (_sizes("--conv", word.split("x"), form) for word in words[2:4])
    if len(outputs) != len(taps):
        raise UserError(f"--conv: found {len(outputs)} axes of the result against {len(taps)} of the window")
    named = _named("--conv", words[4:], form, _OF_CONVOLUTIONS)
    stride, dilation, pad, groups, batch = (named[name] for name in _OF_CONVOLUTIONS)
    if channels % groups or filters % groups:
        raise UserError(f"--conv: found {channels} channels, {filters} filters against multiples of {groups}")
    axes = tuple(_axis(p, r, stride, dilation, pad) for p, r in zip(outputs, taps, strict=True))
    return 1, Convolution(batch, groups, channels // groups, filters // groups, axes)


def _axis(outputs: int, taps: int, stride: int, dilation: int, pad: int) -> WindowAxis:
    span = WindowAxis(outputs, taps, stride, dilation).span
    if 2 * pad >= span:
        raise UserError(f"--conv: found pad={pad} against less than half of the {span} words that windows span")
    return WindowAxis(outputs, taps, stride, dilation, pad, span - 2 * pad)


def _words(option: str, text: str, least: int, form: str) -> list[str]:
    words = text.split(",")
    if len(words) < least:
        raise UserError(f"{option}: found {text!r} against {form}")
    return words


def _in_groups(option: str, heads: int, groups: int) -> int:
    if heads % groups:
        raise UserError(f"{option}: found {heads} heads against a multiple of {groups} groups")
    return heads // groups


def _named(option: str, words: Sequence[str], form: str, defaults: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in defaults:
            raise UserError(f"{option}: found {word!r} against {form}{nearest(name, defaults)}")
        if name in found:
            raise UserError(f"{option}: {name!r} given twice against once")
        found[name] = 0 if name == "pad" and value == "0" else _sizes(option, [value], form)[0]
    return {**defaults, **found}


def _sizes(option: str, words: Sequence[str], form: str, count: int | None = None) -> tuple[int, ...]:
    found = []
    for word in words:
        if not re.fullmatch(r"-?\d{1,30}", word.strip(), re.ASCII):
            raise UserError(f"{option}: found {word!r} against a number ({form})")
        if not 1 <= int(word) <= LARGEST:
            raise UserError(f"{option}: found {word.strip()} against a size from 1 to 2^63 - 1")
        found.append(int(word))
    if count not in (None, len(found)):
        raise UserError(f"{option}: found {len(found)} sizes against {form}")
    return tuple(found)


PARSERS: Final[Mapping[str, Callable[[str], CountedShape | Chain | GroupedAttention]]] = MappingProxyType(
    {"gemm": parse_gemm, "bmm": parse_bmm, "conv": parse_conv, "chain": parse_chain, "attention": parse_attention}
)  # by option
