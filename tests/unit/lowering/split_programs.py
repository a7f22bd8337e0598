"""Small models in ONNX's text form, lowered, with the value of every array."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Port, Program, read_model
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.records import replace
from tests.interpreter import interpret
from tests.onnx_text import program_from_text

Array = npt.NDArray[np.generic]
TABLE = registered_expansions()

MODELS = {
    "product": "g (float[4,6] x, float[6,8] w) => (float[4,8] y) { y = MatMul(x, w) }",
    "batched product": "g (float[2,4,6] a, float[2,6,4] b) => (float[2,4,4] y) { y = MatMul(a, b) }",
    "two layers": """g (float[4,6] x, float[6,8] v, float[8] b, float[8,4] w) => (float[4,4] y)
        { h = MatMul(x, v) s = Add(h, b) r = Relu(s) y = MatMul(r, w) }""",
    "softmax": "g (float[4,8] x) => (float[4,8] y) { y = Softmax<axis=-1>(x) }",
    "normalization": """g (float[4,8] x, float[8] scale, float[8] bias) => (float[4,8] y)
        { y = LayerNormalization<axis=-1>(x, scale, bias) }""",
    "convolution": """g (float[2,4,6,6] x, float[8,4,3,3] w, float[8] b) => (float[2,8,3,3] y)
        { h = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w, b) y = Relu(h) }""",
    "groups": "g (float[2,8,6] x, float[8,2,3] w) => (float[2,8,4] y) { y = Conv<group=4>(x, w) }",
    "transposed convolution": """g (float[2,8,6] x, float[8,2,3] w) => (float[2,4,8] y)
        { y = ConvTranspose<group=2>(x, w) }""",
    "pooling": "g (float[2,4,8] x) => (float[2,4,4] y) { y = MaxPool<kernel_shape=[2], strides=[2]>(x) }",
    "attention": """g (float[4,8] x, float[8,8] v, float[8,8] w) => (float[4,8] y) {
        q = MatMul(x, v) k = MatMul(x, w) shape = Constant<value_ints=[4,2,4]>() out = Constant<value_ints=[4,8]>()
        q3 = Reshape(q, shape) k3 = Reshape(k, shape)
        qh = Transpose<perm=[1,0,2]>(q3) kh = Transpose<perm=[1,2,0]>(k3) vh = Transpose<perm=[1,0,2]>(k3)
        scores = MatMul(qh, kh) p = Softmax<axis=-1>(scores) mixed = MatMul(p, vh)
        back = Transpose<perm=[1,0,2]>(mixed) y = Reshape(back, out) }""",
    "slices": """g (float[4,8] x) => (float[8,4] y) {
        starts = Constant<value_ints=[0]>() ends = Constant<value_ints=[8]>() axes = Constant<value_ints=[1]>()
        steps = Constant<value_ints=[2]>() s = Slice(x, starts, ends, axes, steps)
        i = Constant<value_ints=[3,1,2,0]>() t = Gather<axis=1>(x, i) c = Concat<axis=0>(s, t) y = Neg(c) }""",
    "rearranged": """g (float[2,8,2,4] x) => (float[2,2,4,8] y) { y = DepthToSpace<blocksize=2>(x) }""",
    "rows of a table": """g (float[8,6] x, int64[4] i) => (float[4,6] y) { h = Gather<axis=0>(x, i) y = Abs(h) }""",
    "elements written at indices": """g (float[4,8] x, int64[4,4] i, float[4,4] u) => (float[4,8] y)
        { h = ScatterElements<axis=1>(x, i, u) y = Neg(h) }""",
    "rows added at indices": """g (float[8,8] x, int64[4,1] i, float[4,8] u) => (float[8,8] y)
        { h = ScatterND<reduction="add">(x, i, u) y = Neg(h) }""",
    "rows written": """g (float[8,8] x, float[2,8] u) => (float[8,8] y)
        { i = Constant<value=int64[2,1] {5,2}>() h = ScatterND(x, i, u) y = Neg(h) }""",
    "windows added up": """g (float[2,32,9] x) => (float[2,8,4,4] y) {
        image = Constant<value_ints=[4,4]>() block = Constant<value_ints=[2,2]>()
        h = Col2Im(x, image, block) y = Neg(h) }""",
    "padded": """g (float[4,6] x) => (float[4,8] y) {
        pads = Constant<value_ints=[0,1,0,1]>() h = Pad<mode="edge">(x, pads) y = Exp(h) }""",
    "interpolated": """g (float[2,4,6,4] x) => (float[2,4,12,8] y) {
        scales = Constant<value_floats=[1.0,1.0,2.0,2.0]>() h = Resize<mode="linear">(x, , scales) y = Neg(h) }""",
    "broadcast": """g (float[4,1] a, float[8] b) => (float[4,8] y) { s = Mul(a, b) y = Tanh(s) }""",
}


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A program at two levels with its canonical DAG, and the value of every array."""

    library: Program
    maps: Program
    dag: CanonicalDag
    choices: tuple[Choice, ...]
    values: dict[str, Array]


# As a file with a ``@dace.program``, and how inverses are lowered.
WRITTEN = {
    "eliminated": ("gauss-jordan", "c[n] = np.linalg.inv(a[n]) @ b[n]"),
    "factored": ("lu", "c[n] = np.linalg.inv(a[n]) @ b[n]"),
    "factored in halves": ("cholesky", "c[n] = np.linalg.inv(a[n]) @ b[n]"),
    "nested": ("lu", "for i, j in dace.map[0:4, 0:4]:\n            c[n, i, j] = a[n, i, j] * b[n, j, i] + 1"),
    "nested transposed": ("lu", "c[n] = np.transpose(a[n]) * b[n] - np.transpose(b[n])"),
    "nested sums": ("lu", "c[n] = np.sum(a[n], axis=0) + np.max(b[n] * a[n])"),
    "nested parts": ("lu", "c[n, 1:3] = a[n, 2:, :] + b[n, :2, :]"),
    "nested stencil": ("lu", "c[n, 1:-1, :] = a[n, :-2, :] + a[n, 2:, :] * b[n, 1:-1, :]"),
    "nested numbers": ("lu", "for i, j in dace.map[0:4, 0:4]:\n            c[n, i, j] = a[n, i, j] * (i + 4 * j)"),
}
_PROGRAM = """import dace
import numpy as np

@dace.program
def systems(a: dace.float32[4, 4, 4], b: dace.float32[4, 4, 4], c: dace.float32[4, 4, 4]):
    for n in dace.map[0:4]:
        {body}
"""


@cache
def _library(name: str) -> Program:
    """Return a model at level 1."""
    if name in MODELS:
        return lower_to_canonical(program_from_text(MODELS[name]), TABLE)
    way, body = WRITTEN[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "systems.py"
        path.write_text(_PROGRAM.format(body=body))
        return lower_to_canonical(read_model(path).program, TABLE, [Choice("linalg.inv", way)])


@cache
def lowered(name: str, product: str = "mv") -> Lowered:
    """Return a model whose products are lowered by an expansion."""
    choices = (Choice("MatMul", product),)
    library = _library(name)
    maps = lower_to_maps(library, TABLE, choices)
    dag = extract(maps.sdfg, parameters=tuple(maps.parameters))
    noise = np.random.default_rng(len(name))
    inputs: dict[str, Array] = {
        port.name: noise.integers(0, 8, port.shape)
        if "int" in port.dtype
        else noise.normal(size=port.shape).astype("f")
        for port in maps.inputs
    }
    made = list(dict.fromkeys(name for kernel in dag.kernels for name in kernel.outputs))
    values = {
        **maps.parameters,
        **{port.array: inputs[port.name] for port in maps.inputs},
        **run(maps, inputs, made),
    }
    return Lowered(library, maps, dag, choices, {name: value.reshape(-1) for name, value in values.items()})


def run(program: Program, inputs: Mapping[str, Array], arrays: Sequence[str]) -> dict[str, Array]:
    """Return the values of arrays of a program of level 2."""
    sdfg = program.sdfg
    ports = [Port(name, name, tuple(map(int, sdfg.arrays[name].shape)), "float32") for name in arrays]
    return interpret(replace(program, outputs=tuple(ports)), inputs)
