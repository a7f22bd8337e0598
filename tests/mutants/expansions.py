"""Mutants of the expansions: formulas, indices, orders of loops, what attributes mean."""

from tests.mutants.mutant import Mutant

_FOLDER = "lowering/expansions"

EXPANSIONS = (
    Mutant(f"{_FOLDER}/reduce.py", '(Reduction.SUM, "a * a", "sqrt(a)")', '(Reduction.SUM, "a * a", "a")'),
    Mutant(
        f"{_FOLDER}/own_loops.py",
        "nest.loops[name].kind is not LoopKind.PARALLEL)",
        "nest.loops[name].kind is LoopKind.PARALLEL)",
    ),
    Mutant(
        f"{_FOLDER}/matmul.py",
        '("j", "k") if transpose_b else ("k", "j")',
        '("k", "j") if transpose_b else ("j", "k")',
    ),
    Mutant(f"{_FOLDER}/matmul.py", "loops, total = {**by_columns, **p.k},", "loops, total = {**p.k, **by_columns},"),
    Mutant(f"{_FOLDER}/products.py", 'added = "b" if beta == 1.0 else f"{beta!r} * b"', 'added = "b"'),
    Mutant(
        f"{_FOLDER}/conv.py",
        'linear_index(["i0", *spatial], (y.shape[0], *windows.counts))',
        'linear_index([*spatial, "i0"], (*windows.counts, y.shape[0]))',
    ),
    Mutant("lowering/windows.py", "+ (extent - 1) * dilation + 1", "+ extent * dilation"),
    Mutant("lowering/windows.py", '(total + (auto_pad == "SAME_LOWER")) // 2', "total // 2"),
    Mutant(f"{_FOLDER}/conv.py", '(auto_pad != "SAME_UPPER")', '(auto_pad == "SAME_UPPER")'),
    Mutant(f"{_FOLDER}/softmax.py", '"exp(a - b)"', '"exp(a)"'),
    Mutant(
        f"{_FOLDER}/normalization.py",
        "known[0] / np.sqrt(known[3] + epsilon)",
        "known[0] / (np.sqrt(known[3]) + epsilon)",
    ),
    Mutant(
        f"{_FOLDER}/pooling.py", "(-before[axis], extent + behind[axis])", "(-before[axis], extent + behind[axis] + 1)"
    ),
    Mutant(f"{_FOLDER}/movement.py", 'f"{extent - 2} - i"', 'f"{extent - 1} - i"'),
    Mutant(f"{_FOLDER}/indexed.py", "astype(np.int64) % op.input(0).shape[axis]", "astype(np.int64)"),
    Mutant(f"{_FOLDER}/movement.py", "start + x.shape[axis] if start < 0 else start", "start"),
    Mutant(f"{_FOLDER}/positions.py", "is_taken = first < last if op", "is_taken = first <= last if op"),
    Mutant(f"{_FOLDER}/movement.py", "(0, 1, 4, 2, 5, 3)", "(0, 1, 4, 3, 5, 2)"),
    Mutant(f"{_FOLDER}/elementwise.py", "max(a, 0) + log1p(exp(-abs(a)))", "log1p(exp(a))"),
    Mutant(f"{_FOLDER}/elementwise.py", "(b if fmod(a, b) * b < 0 else 0)", "(b if fmod(a, b) < 0 else 0)"),
    Mutant(f"{_FOLDER}/transpose.py", 'f"i{permutation.index(axis)}"', 'f"i{permutation[axis]}"'),
)
