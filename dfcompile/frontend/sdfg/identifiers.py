"""Names in SDFGs: dialects of operators, connectors, and identifiers that mean nothing else in C++ and in Python."""

import builtins
import json
import keyword
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from dfcompile.frontend.onnx.free_name import free_name

AttributeValue: TypeAlias = "int | float | str | Sequence[AttributeValue]"

ONNX = "onnx"
CANONICAL = "canonical"


def input_connector(position: int) -> str:
    """Return the connector of an operand by position; an omitted optional operand has no connector."""
    return f"in_{position}"


def output_connector(position: int) -> str:
    """Return the connector of a result by position; an omitted optional result has no connector."""
    return f"out_{position}"


_ENCODER = json.JSONEncoder(sort_keys=True)


def attributes_text(attributes: Mapping[str, AttributeValue]) -> str:
    """Return attributes as the JSON object that a node keeps."""
    return _ENCODER.encode(dict(attributes))


_CPP_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq
"""
# An array of one of these names hides the function (or macro) that generated code calls: `tanh` in `tanh(x)`.
_CPP_NAMES = """
    abs acos acosh asin asinh assert atan atan2 atanh bit_cast cbrt ceil cfloat clamp complex conj copysign cos cosh
    dace errno exp exp2 expm1 fabs fdim float32_t float64_t floor fma fmax fmin fmod fpclassify free frexp gamma half
    heaviside hypot imag INFINITY int16_t int32_t int64_t int8_t int_ceil int_floor isfinite isinf isnan isnormal j0 j1
    jn ldexp lerp lgamma llrint llround log log10 log1p log2 logb lrint lround main malloc math max memcpy memset min
    modf NAN nan nearbyint nextafter NULL numpy np norm pow powi printf proj real reciprocal remainder remquo rint
    round scalbn sign signbit sin sinh size_t sqrt sqrtf std tan tanh tgamma trunc uint16_t uint32_t uint64_t uint8_t
    uint y0 y1 yn
"""
RESERVED = frozenset((_CPP_KEYWORDS + _CPP_NAMES).split()).union(
    keyword.kwlist, keyword.softkwlist, dir(builtins), dir(math)
)


def is_safe(name: str) -> bool:
    """Return whether a name can stand as it is: an ASCII identifier, not reserved, no leading underscore."""
    return name.isascii() and name.isidentifier() and name not in RESERVED and not name.startswith("_")


def safe_identifiers(names: Iterable[str]) -> Mapping[str, str]:
    """Return one safe and unique identifier for each name.

    A safe name stays; in any other, what is no letter or digit becomes ``_``, and a reserved one gets a trailing ``_``.

    >>> safe_identifiers(["tanh", "conv1.weight", "conv1_weight", "0"])
    {'tanh': 'tanh_', 'conv1.weight': 'conv1_weight_1', 'conv1_weight': 'conv1_weight', '0': 'v0'}
    """
    ordered = tuple(dict.fromkeys(names))
    taken = {name for name in ordered if is_safe(name)}
    return {name: name if is_safe(name) else free_name(safe_identifier(name), taken) for name in ordered}


def labels_of(names: Iterable[str]) -> Mapping[str, str]:
    """Return a unique label for each name of a node: the safe identifier of ASCII, else letters of every script.

    Labels are shown; what becomes C++ of them is made an identifier there.

    >>> labels_of(["conv1/relu", "卷积 0"])
    {'conv1/relu': 'conv1_relu', '卷积 0': '卷积_0'}
    """
    ordered = tuple(dict.fromkeys(names))
    plain = safe_identifiers(name for name in ordered if name.isascii())
    taken = set(plain.values())
    others = {name: free_name(_letters(name), taken) for name in ordered if not name.isascii()}
    return {name: plain[name] if name.isascii() else others[name] for name in ordered}


def _letters(name: str) -> str:
    kept = "".join(char if char.isalnum() or (not char.isascii() and char.isprintable()) else " " for char in name)
    return "_".join(kept.split())


def safe_identifier(name: str) -> str:
    """Return a safe identifier that is near to the name.

    >>> safe_identifier("/layers.0/attn"), safe_identifier("2d"), safe_identifier("double")
    ('layers_0_attn', 'v2d', 'double_')
    """
    word = re.sub(r"[^0-9A-Za-z]+", "_", name).lstrip("_")
    if not word or word[0].isdigit():
        word = f"v{word}"
    return f"{word}_" if word in RESERVED else word


def underscored(name: str) -> str:
    """Return the name of a step or of an array as a part of an identifier of C++: of other scripts nothing stays.

    >>> underscored("conv1.matmul")
    'conv1_matmul'
    """
    if not name.isascii():
        return safe_identifier(name)
    return "".join(character if character.isalnum() else "_" for character in name)
