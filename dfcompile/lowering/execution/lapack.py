"""LAPACK in compiled programs: C++ functions that tasklets call, for each of its four element types."""

import dace
from dace.sdfg.nodes import Tasklet

LIBRARIES = "lapacke;openblas"  # as CMake lists them
MISSING = r"lapacke\.h: No such file|cannot find -l(lapacke|openblas)"
HINT = "LAPACK is not installed (try 'apt-get install libopenblas-dev liblapacke-dev')"

_NAMESPACE = "dfcompile_lapack"
_LETTERS = (("float", "s"), ("double", "d"), ("std::complex<float>", "c"), ("std::complex<double>", "z"))
# Row-major matrices, as in NumPy. LAPACK overwrites operands, so it gets copies. Where it fails, the result is NaN.
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
template <typename T> void fill_with_nan(T *result, long count) {
    std::fill(result, result + count, T(std::numeric_limits<double>::quiet_NaN()));
}
"""
_OF_TYPE = """
inline void inverse(const {type} *a, {type} *result, int n) {{
    std::vector<lapack_int> rows(n);
    std::copy(a, a + long(n) * n, result);
    if (LAPACKE_{letter}getrf(LAPACK_ROW_MAJOR, n, n, result, n, rows.data()) ||
        LAPACKE_{letter}getri(LAPACK_ROW_MAJOR, n, result, n, rows.data()))
        fill_with_nan(result, long(n) * n);
}}
inline void solution(const {type} *a, const {type} *b, {type} *result, int n, int m) {{
    std::vector<lapack_int> rows(n);
    std::vector<{type}> factors(a, a + long(n) * n);
    std::copy(b, b + long(n) * m, result);
    if (LAPACKE_{letter}gesv(LAPACK_ROW_MAJOR, n, m, factors.data(), n, rows.data(), result, m))
        fill_with_nan(result, long(n) * m);
}}
inline void triangular(
    const {type} *a, const {type} *b, {type} *result, int n, int m, char uplo, char trans, char diag) {{
    std::copy(b, b + long(n) * m, result);
    if (LAPACKE_{letter}trtrs(LAPACK_ROW_MAJOR, uplo, trans, diag, n, m, a, n, result, m))
        fill_with_nan(result, long(n) * m);
}}
inline void cholesky(const {type} *a, {type} *result, int n, double tolerance) {{  // 0: takes any matrix for Hermitian
    double defect = 0, largest = 0;
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j) {{
            const std::complex<double> element(a[i * n + j]), mirrored(a[j * n + i]);
            const double difference = std::abs(element - std::conj(mirrored));
            if (!(difference <= defect)) defect = difference;  // also if it is NaN
            largest = std::max(largest, std::abs(element));
            result[i * n + j] = j > i ? {type}(0) : a[i * n + j];
        }}
    if ((tolerance > 0 && !(defect <= tolerance * largest)) ||
        LAPACKE_{letter}potrf(LAPACK_ROW_MAJOR, 'L', n, result, n))
        fill_with_nan(result, long(n) * n);
}}
"""


def calls_lapack(sdfg: dace.SDFG) -> bool:
    """Return whether a tasklet of a program calls LAPACK."""
    tasklets = (node for state in sdfg.states() for node in state.nodes() if isinstance(node, Tasklet))
    return any(tasklet.code.as_string.startswith(f"{_NAMESPACE}::") for tasklet in tasklets)


def definitions() -> str:
    """Return the C++ source of these functions, which goes before that of the program."""
    return _HEAD + "".join(_OF_TYPE.format(type=name, letter=letter) for name, letter in _LETTERS) + "}\n"
