"""Small programs with operators of several expansions, and ways to lower them."""

import numpy as np
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.frontend import Program
from dfcompile.options import Choice
from tests.onnx_text import program_from_text

small = st.integers(1, 4)
granularities = st.one_of(
    st.just(Granularity()),
    st.builds(Granularity, pieces=st.integers(1, 40)),
    st.builds(Granularity, max_tasks=st.integers(1, 5)),
    st.builds(Granularity, split=st.integers(1, 9)),
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A convolution, what networks do with its result, then a product or another convolution."""
    filters, channels = draw(small), draw(st.integers(1, 3))
    kernel, size = draw(st.integers(1, 3)), draw(st.integers(3, 6))
    count = size - kernel + 1
    weights = {"w": np.ones((filters, channels, kernel, kernel), np.float32)}
    step = draw(
        st.sampled_from(
            [
                "Relu(y)",
                "Softmax<axis=3>(y)",
                "Add(y, y)",
                "MaxPool<kernel_shape=[1,1]>(y)",
                "Transpose<perm=[0,1,3,2]>(y)",
            ]
        )
    )
    if draw(st.booleans()):
        columns = draw(small)
        weights["v"] = np.ones((count, columns), np.float32)
        last, shape = "MatMul(z, v)", f"[1,{filters},{count},{columns}]"
    else:
        rows = draw(small)
        weights["v"] = np.ones((rows, filters, 1, 1), np.float32)
        last, shape = "Conv(z, v)", f"[1,{rows},{count},{count}]"
    return program_from_text(
        f"g (float[1,{channels},{size},{size}] x) => (float{shape} m) {{ y = Conv(x, w) z = {step} m = {last} }}",
        **weights,
    )


@st.composite
def choices(draw: st.DrawFn) -> list[Choice]:
    """An expansion of each type, perhaps another one of the first convolution."""
    found = [
        Choice("Conv", draw(st.sampled_from(["im2col", "direct"]))),
        Choice("MatMul", draw(st.sampled_from(["mv", "op", "lmv", "ip", "columns", "rows"]))),
    ]
    if draw(st.booleans()):
        found.append(Choice("Conv", draw(st.sampled_from(["im2col", "direct"])), "Conv_0"))
    return found
