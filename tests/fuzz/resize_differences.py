"""Where sizes and values of Resize differ from onnxruntime's."""

from tests.fuzz.disagreement import Disagreement, KnownDifference


def _is_weighted_by_what_rounding_leaves(case: Disagreement) -> bool:
    """Return whether weights are multiples of a coefficient beside which single precision has no 1."""
    coefficient = next((entry.f for entry in case.node.attribute if entry.name == "cubic_coeff_a"), 0.0)
    is_cubic = any(entry.name == "mode" and entry.s == b"cubic" for entry in case.node.attribute)
    return is_cubic and abs(coefficient) > 2.0**24


def _keeps_a_ratio_from_the_end(case: Disagreement) -> bool:
    """Return whether sizes differ that keep the ratio of axes of which some are counted from the end."""
    named = {entry.name: entry for entry in case.node.attribute}
    keeps = "keep_aspect_ratio_policy" in named and named["keep_aspect_ratio_policy"].s != b"stretch"
    is_from_end = "axes" in named and min(named["axes"].ints, default=0) < 0
    has_sizes = len(case.node.input) > 3 and bool(case.node.input[3])
    differs = any(case.found[name].shape != value.shape for name, value in case.expected.items())
    return keeps and is_from_end and has_sizes and differs


RESIZE_DIFFERENCES = (
    KnownDifference(
        "Resize",
        "a cubic coefficient beside which 1 is lost in single precision: the sum of weights is what rounding leaves",
        "onnx.defs: cubic_coeff_a of Resize-19; tests/fuzz/test_known_differences.py",
        _is_weighted_by_what_rounding_leaves,
    ),
    KnownDifference(
        "Resize",
        "sizes that keep an aspect ratio, axes counted from the end: onnxruntime leaves those axes as they are",
        "onnx.defs: axes of Resize-19, from -r to r - 1; tests/fuzz/test_known_differences.py",
        _keeps_a_ratio_from_the_end,
    ),
)
