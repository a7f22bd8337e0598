"""All chips of split programs played out: each makes its part of every array from its parts of others."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, Kernel, LoopKind
from dfcompile.canonical_dag.extraction import extract
from dfcompile.dfmodel_backend.sharding.program_shares import ChipShare, chip_share
from dfcompile.frontend import Port, Program
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.operators import SHIPPED
from dfcompile.lowering.program_nodes import canonical_nodes
from dfcompile.lowering.shares.program_share import SharedProgram
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_text import program_from_text

Array = npt.NDArray[np.generic]
Chip = tuple[int, ...]
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
    "padded": """g (float[4,6] x) => (float[4,8] y) {
        pads = Constant<value_ints=[0,1,0,1]>() h = Pad<mode="edge">(x, pads) y = Exp(h) }""",
    "broadcast": """g (float[4,1] a, float[8] b) => (float[4,8] y) { s = Mul(a, b) y = Tanh(s) }""",
}


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A program at two levels with its canonical DAG, and the value of every array."""

    library: Program
    maps: Program
    dag: CanonicalDag
    values: dict[str, Array]


@cache
def lowered(name: str) -> Lowered:
    library = lower_to_canonical(program_from_text(MODELS[name]), TABLE)
    maps = lower_to_maps(library, TABLE)
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
    return Lowered(library, maps, dag, {name: value.reshape(-1) for name, value in values.items()})


def run(program: Program, inputs: Mapping[str, Array], arrays: Sequence[str]) -> dict[str, Array]:
    """Return the values of arrays of a program of level 2."""
    sdfg = program.sdfg
    ports = [Port(name, name, tuple(map(int, sdfg.arrays[name].shape)), "float32") for name in arrays]
    return interpret(replace(program, outputs=tuple(ports)), inputs)


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """A program on several chips.

    Attributes:
        whole: on one.
        chips: along each dimension of the network.
        share: what each chip runs.
        maps: the share, lowered.
        dag: of it.
    """

    whole: Lowered
    chips: Chip
    share: ChipShare
    maps: Program
    dag: CanonicalDag

    @staticmethod
    def of(whole: Lowered, chips: Chip, choices: Mapping[str, Chip]) -> "Played":
        shared = SharedProgram(whole.library, TABLE, {kernel.name: kernel for kernel in whole.dag.kernels})
        share = chip_share(whole.dag, chips, choices)
        assert shared.refused(share.program) == ()
        maps = lower_to_maps(shared.shared(share.program), TABLE)
        return Played(whole, chips, share, maps, extract(maps.sdfg, parameters=tuple(maps.parameters)))

    def has(self, kernel: Kernel, place: int, at: Chip, *, made: bool) -> npt.NDArray[np.bool_]:
        """Return which elements of an operand, or of a result, are a chip's."""
        array = (kernel.outputs if made else kernel.inputs)[place]
        offsets = np.arange(next(one.elements for one in self.whole.dag.tensors if one.name == array))
        mine = np.ones(len(offsets), dtype=np.bool_)
        for number, loop in enumerate(kernel.loops):
            digit = (loop.outputs if made else loop.inputs)[place]
            if digit is not None:
                index, length = offsets // digit.stride % loop.extent, loop.extent
                for dimension in self.dimensions(kernel, number):
                    length = -(-length // self.chips[dimension])
                    mine &= index // length == at[dimension]
                    index = index % length
        return mine

    def dimensions(self, kernel: Kernel, number: int) -> list[int]:
        """Return the dimensions along which a loop is split, outermost first."""
        choice = self.share.choices[kernel.name]
        return [dimension for dimension in reversed(range(len(choice))) if choice[dimension] == number]

    def pairs(self) -> list[tuple[Kernel, Kernel]]:
        """Return each kernel with its share."""
        shares = {kernel.name: kernel for kernel in self.dag.kernels}
        return [(kernel, shares[kernel.name]) for kernel in self.whole.dag.kernels]

    def made_on(self, at: Chip) -> dict[str, Array]:
        """Return what a chip makes from its parts of all operands."""
        parts: dict[str, Array] = {}
        for kernel, share in self.pairs():
            for place, (array, part) in enumerate(zip(kernel.inputs, share.inputs, strict=True)):
                parts[part] = self.whole.values[array][self.has(kernel, place, at, made=False)]
        maps = self.maps
        here = replace(
            maps,
            parameters=MappingProxyType({name: parts.get(name, value) for name, value in maps.parameters.items()}),
        )
        inputs = {port.name: parts.get(port.array, self.whole.values.get(port.array)) for port in maps.inputs}
        names = list(dict.fromkeys(name for kernel in self.dag.kernels for name in kernel.outputs))
        return run(here, {name: value for name, value in inputs.items() if value is not None}, names)

    def check(self, ats: Sequence[Chip]) -> None:
        """Compare what chips make with the whole; partial results of all of them are combined."""
        made = {at: self.made_on(at) for at in ats}
        for kernel, share in self.pairs():
            expected = self.whole.values[kernel.outputs[0]].astype(float)
            partial = [
                (loop.kind, self.dimensions(kernel, number))
                for number, loop in enumerate(kernel.loops)
                if loop.kind is not LoopKind.PARALLEL and self.dimensions(kernel, number)
            ]
            combined = sorted({dimension for _, dimensions in partial for dimension in dimensions})
            results: dict[Chip, npt.NDArray[np.float64]] = {}
            for at in ats:
                found = made[at][share.outputs[0]].reshape(-1).astype(float)
                key = tuple(0 if dimension in combined else number for dimension, number in enumerate(at))
                combine = np.add if not partial or partial[0][0] is LoopKind.SUM else np.maximum
                results[key] = combine(results[key], found) if key in results else found
            for at, found in results.items():
                if not combined or len(ats) == prod(self.chips):
                    mine = self.has(kernel, 0, at, made=True)
                    np.testing.assert_allclose(found, expected[mine], rtol=2e-4, atol=1e-5, err_msg=kernel.name)


def random_choices(whole: Lowered, chips: Chip, rng: random.Random, *, even: bool) -> dict[str, Chip]:
    """Return a random split of every kernel; even: all chips have as much, in the same places of what they have."""
    operators = {op.name: op for op in canonical_nodes(whole.library, TABLE)}
    found = {}
    for kernel in whole.dag.kernels:
        op = operators[kernel.name]
        nest = op.operator.loop_nest(op.operands(), op.output())
        texts = [" ".join(index or "" for index in read) for read in nest.reads] if nest else []
        allowed = [
            number
            for number, loop in enumerate(kernel.loops)
            if not even
            or (
                loop.extent % prod(chips) == 0
                and (op.op_type != "Gather" or None not in loop.inputs)
                and all(
                    digit is not None or not re.search(rf"\b{loop.name}\b", text)
                    for digit, text in zip(loop.inputs, texts, strict=False)
                )
            )
        ]
        found[kernel.name] = tuple(rng.choice([-1, *allowed]) for _ in chips)
    return found


SEEDS = st.integers(0, 2**40)
NAMES = st.sampled_from(list(MODELS))


@examples(60)
@given(NAMES, SEEDS)
def test_all_chips_together_make_what_one_makes(name: str, seed: int) -> None:
    """Each chip, given its parts of all operands as exchanges leave them, makes its part of every result."""
    rng = random.Random(seed)
    whole, chips = lowered(name), rng.choice([(2,), (4,), (2, 2)])
    played = Played.of(whole, chips, random_choices(whole, chips, rng, even=True))

    played.check(list(product(*(range(count) for count in chips))))


@examples(100)
@given(NAMES, SEEDS)
def test_the_chip_with_most_makes_its_part_of_uneven_splits(name: str, seed: int) -> None:
    rng = random.Random(seed)
    whole, chips = lowered(name), rng.choice([(2,), (3,), (5,), (2, 3)])
    played = Played.of(whole, chips, random_choices(whole, chips, rng, even=False))

    played.check([(0,) * len(chips)])
    assert int(played.dag.work.sum()) * prod(chips) >= int(whole.dag.work.sum())


def test_loops_are_split_in_every_way() -> None:
    """Otherwise the tests above would say little."""
    seen: set[tuple[str, str]] = set()
    for name in MODELS:
        whole = lowered(name)
        kernels = {kernel.name: kernel for kernel in whole.dag.kernels}
        for seed in range(4):
            for kernel, choice in random_choices(whole, (2, 2), random.Random(seed), even=True).items():
                seen |= {(kernels[kernel].op, kernels[kernel].loops[number].kind) for number in choice if number >= 0}

    assert {op for op, _ in seen} == set(SHIPPED) - {"LookupElements"}
    assert {kind for _, kind in seen} == {LoopKind.PARALLEL, LoopKind.SUM, LoopKind.MAX}


def test_what_is_exchanged_is_an_output_and_an_input() -> None:
    """The rows of a product are split, then the columns of the next one: an exchange of what is between them."""
    whole = lowered("two layers")
    row, column = 0, 1  # numbers of loops
    names = [kernel.name for kernel in whole.dag.kernels]
    choices = dict.fromkeys(names[:-1], (row,)) | {names[-1]: (column,)}
    played = Played.of(whole, (2,), choices)
    program = SharedProgram(whole.library, TABLE, {kernel.name: kernel for kernel in whole.dag.kernels}).shared(
        played.share.program
    )

    assert [(port.name, port.shape) for port in program.outputs] == [("y", (4, 2)), ("r", (2, 8))]
    assert [(port.name, port.shape) for port in program.inputs if port.name not in "vwb"] == [
        ("x", (2, 6)),
        ("r_copy", (4, 8)),
    ]
    assert played.share.apart == ((names[-2], names[-1]),)
