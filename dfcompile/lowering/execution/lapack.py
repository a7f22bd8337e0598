"""LAPACK in compiled programs: what tasklets call of it, for each of its four element types."""

import dace
from dace.sdfg.nodes import Tasklet

LIBRARIES = "lapacke;openblas"  # as CMake lists them
MISSING = r"lapacke\.h: No such file|cannot find -l(lapacke|openblas)"
HINT = "LAPACK is not installed (try 'apt-get install libopenblas-dev liblapacke-dev')"

_NAMESPACE = "dfcompile_lapack"
_LETTERS = (("float", "s"), ("double", "d"), ("std::complex<float>", "c"), ("std::complex<double>", "z"))
# Row by row, as NumPy has matrices. LAPACK overwrites its operands, which are the program's inputs: it gets copies.
_HEAD = """
#include <algorithm>
#include <complex>
#include <limits>
#include <vector>
#define LAPACK_COMPLEX_CUSTOM
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>
namespace dfcompile_lapack {
template <typename T> void none(T *result, long count) {
    std::fill(result, result + count, T(std::numeric_limits<double>::quiet_NaN()));
}
"""
_OF_TYPE = """
inline void inverse(const {type} *a, {type} *result, int n) {{
    std::vector<lapack_int> rows(n);
    std::copy(a, a + long(n) * n, result);
    if (LAPACKE_{letter}getrf(LAPACK_ROW_MAJOR, n, n, result, n, rows.data()) ||
        LAPACKE_{letter}getri(LAPACK_ROW_MAJOR, n, result, n, rows.data()))
        none(result, long(n) * n);
}}
inline void solution(const {type} *a, const {type} *b, {type} *result, int n, int m) {{
    std::vector<lapack_int> rows(n);
    std::vector<{type}> factors(a, a + long(n) * n);
    std::copy(b, b + long(n) * m, result);
    if (LAPACKE_{letter}gesv(LAPACK_ROW_MAJOR, n, m, factors.data(), n, rows.data(), result, m))
        none(result, long(n) * m);
}}
inline void triangular(
    const {type} *a, const {type} *b, {type} *result, int n, int m, char triangle, char form, char diagonal) {{
    std::copy(b, b + long(n) * m, result);
    if (LAPACKE_{letter}trtrs(LAPACK_ROW_MAJOR, triangle, form, diagonal, n, m, a, n, result, m))
        none(result, long(n) * m);
}}
inline void cholesky(const {type} *a, {type} *result, int n, double hermitian) {{
    double defect = 0, largest = 0;
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j) {{
            const std::complex<double> one(a[i * n + j]), other(a[j * n + i]);
            const double off = std::abs(one - std::conj(other));
            if (!(off <= defect)) defect = off;  // not a number stays
            largest = std::max(largest, std::abs(one));
            result[i * n + j] = j > i ? {type}(0) : a[i * n + j];
        }}
    if ((hermitian > 0 && !(defect <= hermitian * largest)) ||
        LAPACKE_{letter}potrf(LAPACK_ROW_MAJOR, 'L', n, result, n))
        none(result, long(n) * n);
}}
"""


def calls_lapack(sdfg: dace.SDFG) -> bool:
    """Return whether a scope of a program calls it."""
    tasklets = (node for state in sdfg.states() for node in state.nodes() if isinstance(node, Tasklet))
    return any(tasklet.code.as_string.startswith(f"{_NAMESPACE}::") for tasklet in tasklets)


def definitions() -> str:
    """Return C++ source of the functions that tasklets call."""
    return _HEAD + "".join(_OF_TYPE.format(type=name, letter=letter) for name, letter in _LETTERS) + "}\n"
