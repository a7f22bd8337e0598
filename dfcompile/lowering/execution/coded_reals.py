"""Coded reals: C++ types of the real numbers of a byte, or less, that DaCe has no type for.

Each has a table of the number that a code stands for; a number is stored as the code next to it, of two that are as
near as the even one. Codes with a sign have it in the highest bit, and the numbers without it grow with the code.
"""

from copy import copy

import dace
import numpy as np
from dace.sdfg.nodes import Tasklet

from dfcompile.frontend import CODED_REALS, PACKED_BITS, POWERS_OF_TWO, scalar_type

_BYTES = 256
# What a type has for no number: these are the codes of ml_dtypes. Four bits have no such code: it becomes a zero.
_NO_NUMBER = {
    "float4_e2m1fn": "(std::signbit(number) ? 0 : 8)",
    "float8_e4m3fnuz": "128",
    "float8_e5m2fnuz": "128",
    POWERS_OF_TWO: "255",
}
_STRUCT = """
namespace dace {{
struct {name} {{
    unsigned char code;
    constexpr {name}() : code(0) {{}}
    {name}(float number) : code(encoded(number)) {{}}
    operator float() const {{ return numbers()[code]; }}
    static const float *numbers() {{
        static const float found[] = {{{numbers}}};
        return found;
    }}
    static unsigned char encoded(float number) {{
        if (std::isnan(number){unsigned_only}) return {no_number};
        const float size = std::fabs(number), *first = numbers(), *end = first + {count};
        int code = int(std::upper_bound(first, end, size) - first) - 1;
        if (code == {last}) {{
            if (size {beyond} {limit}) return {overflow};
        }} else if (code < 0) {{
            code = 0;
        }} else {{
            const double middle = 0.5 * (double(first[code]) + double(first[code + 1]));
            if (size > middle || (size == middle && {rounds_up})) ++code;
        }}
        return (unsigned char)(std::signbit(number){signed} ? code + {sign} : code);
    }}
}};
}}
"""


def passed_type(dtype: str) -> dace.typeclass:
    """Return the type of the elements of an array that is handed to compiled code: bytes."""
    passed = copy(scalar_type(dtype))
    passed.type, passed.dtype = np.uint8, passed
    return passed


def definitions(sdfg: dace.SDFG) -> str:
    """Return C++ source that defines the types that DaCe lacks, of arrays and of casts between joined tasks."""
    held = {np.dtype(array.dtype.type).name for array in sdfg.arrays.values()}
    tasklets = [node.code.as_string for state in sdfg.states() for node in state.nodes() if isinstance(node, Tasklet)]
    used = (one for one in sorted(CODED_REALS) if one in held or any(f"dace.{one}" in code for code in tasklets))
    return "".join(map(_definition, used))


def _definition(dtype: str) -> str:
    bits = PACKED_BITS.get(dtype, 8)
    numbers = (np.arange(_BYTES) % 2**bits).astype(np.uint8).view(dtype).astype(np.float32)
    is_power = dtype == POWERS_OF_TWO
    count = 2**bits - 1 if is_power else 2 ** (bits - 1)  # codes of numbers that are not negative
    largest, before = float(numbers[count - 1]), float(numbers[count - 2])
    no_number = _NO_NUMBER[dtype]
    last = count - 1
    return _STRUCT.format(
        name=dtype,
        numbers=", ".join("NAN" if np.isnan(number) else f"{float(number).hex()}f" for number in numbers),
        no_number=no_number,
        unsigned_only=" || number <= 0" if is_power else "",
        count=count,
        last=last,
        # Half-way from the largest number to the next one, were there one, goes to the even code.
        beyond=">" if last % 2 == 0 else ">=",
        limit=f"{largest + (largest if is_power else largest - before) / 2:.1f}",
        overflow=f"(std::signbit(number) ? {last + 2 ** (bits - 1)} : {last})" if bits < 8 else no_number,
        rounds_up="true" if is_power else "code % 2",
        signed="" if dtype.endswith("fn") else " && code" if not is_power else " && false",
        sign=2 ** (bits - 1),
    )
