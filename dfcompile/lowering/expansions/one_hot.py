"""ONNX OneHot."""

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion


@onnx_expansion("OneHot", "map", default=True)
def one_hot(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, j, …] = on if indices[…] == j else off``: one element-wise task; a negative index counts from the end."""
    indices, y = op.input(0), op.output()
    (depth,) = op.static_integers(1, "depth") or (0,)
    axis = op.axis(default=-1, rank=y.rank)
    build.check_parameter((depth,))
    is_unsigned = np.dtype(indices.dtype).kind == "u"
    positions = build.parameter("positions", np.arange(depth, dtype=indices.dtype if is_unsigned else np.int64))
    is_here = "a == b" if is_unsigned else f"(a == b or a + {depth} == b)"
    around = [at for at in range(y.rank) if at != axis]
    axes = [around or [0], [axis], [0], [0]]
    build.elementwise(f"d if {is_here} else c", [indices, positions, *_values(op, build)], y, axes=axes)


def _values(op: Operator, build: CanonicalFragment) -> tuple[Tensor, Tensor]:
    """Return what stands for off and for on, one element each."""
    values = op.input(2)
    if values.value is not None:
        off, on = (build.parameter(name, values.value[at : at + 1]) for at, name in enumerate(("off", "on")))
        return off, on
    off, on = (build.copied(name, values, (f"{at} + i0",), (1,)) for at, name in enumerate(("off", "on")))
    return off, on
