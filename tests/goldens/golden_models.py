"""Small models whose canonical DAGs and schedules are written down as text, for people to read."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from tests.onnx_text import model_from_text


@dataclass(frozen=True, slots=True)
class GoldenModel:
    """A model as ONNX text, and what its schedule is for.

    Attributes:
        name: of its files.
        text: inputs, outputs, nodes.
        parameters: their shapes; what they hold plays no part.
        pes: number of processing elements, so few that there are several blocks.
        partition: the partitioner.
    """

    name: str
    text: str
    parameters: Mapping[str, tuple[int, ...]]
    pes: int
    partition: str = "sb-rlx"

    def dag(self) -> CanonicalDag:
        """Return the canonical DAG by the default expansions."""
        constants: dict[str, npt.NDArray[np.float32]] = {
            name: np.ones(shape, np.float32) for name, shape in self.parameters.items()
        }
        program, table = (
            program_of(self.name, model_from_text(self.text, **constants), ReadOptions()),
            registered_expansions(),
        )
        maps = lower_to_maps(lower_to_canonical(program, table), table)
        return extract(maps.sdfg, parameters=tuple(maps.parameters))


GOLDEN_MODELS = (
    GoldenModel(
        "gemm_relu",
        "gemm_relu (float[2,3] x) => (float[2,4] y) { p = Gemm(x, w, b)  y = Relu(p) }",
        {"w": (3, 4), "b": (4,)},
        pes=4,
    ),
    GoldenModel("softmax", "softmax (float[3,4] x) => (float[3,4] y) { y = Softmax<axis = 1>(x) }", {}, pes=2),
    GoldenModel(
        "convolution",
        "convolution (float[1,1,4,4] x) => (float[1,2,2,2] y) { y = Conv(x, w, b) }",
        {"w": (2, 1, 3, 3), "b": (2,)},
        pes=3,
        partition="sb-lts",
    ),
    GoldenModel(
        "attention_head",
        "attention_head (float[3,2] q, float[3,2] k, float[3,2] v) => (float[3,2] y) "
        "{ t = Transpose<perm = [1, 0]>(k)  s = MatMul(q, t)  a = Softmax<axis = 1>(s)  y = MatMul(a, v) }",
        {},
        pes=4,
    ),
)
