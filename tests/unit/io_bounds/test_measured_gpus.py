"""Traffic that was measured on GPUs [huang24 Fig. 24a]: a product of 4,096 cubed in fp32, by size of the L2 cache."""

from dfcompile.io_bounds.curve import Rules
from dfcompile.io_bounds.einsum.plain import gemm, plain_curve
from dfcompile.io_bounds.proved import proved_words

MIB, GIB, WORD = 2**20, 2**30, 4
MEASURED = (  # L2, and bytes of DRAM traffic on SIMT and on tensor cores
    (2 * MIB, 2.69 * GIB, 1.58 * GIB),
    (24 * MIB, 650 * MIB, 561.51 * MIB),
    (40 * MIB, 533 * MIB, 411.06 * MIB),
    (50 * MIB, 373.39 * MIB, 373.33 * MIB),
)


def test_no_measured_gpu_moves_less_than_the_bounds() -> None:
    einsum = gemm(4096, 4096, 4096)
    curve = plain_curve(einsum, Rules())
    for cache, *measured in MEASURED:
        best = curve.at(cache // WORD)

        assert best is not None
        assert proved_words(einsum.contracted, cache // WORD) * WORD <= best * WORD <= min(measured)


def test_all_tiles_are_a_quarter_below_divisors_at_two_mebibytes() -> None:
    found = plain_curve(gemm(4096, 4096, 4096), Rules()).at(2 * MIB // WORD)

    assert found == 832 * MIB // WORD
