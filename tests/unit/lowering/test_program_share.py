"""All chips of split programs played out: each makes its part of every array from its parts of others."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from dfcompile.frontend import Program
from dfcompile.lowering import lower_to_maps
from dfcompile.lowering.operators import SHIPPED
from dfcompile.lowering.program_nodes import canonical_nodes
from dfcompile.lowering.shares import SharedProgram, choices_of
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.lowering.split_programs import MODELS, TABLE, WRITTEN, Array, Lowered, lowered, run

Chip = tuple[int, ...]


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
        maps = lower_to_maps(shared.shared(share.program), TABLE, (*choices_of(whole.maps.chosen), *whole.choices))
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
PRODUCTS = ("mv", "op", "lmv", "ip", "columns", "rows")
NAMES = st.sampled_from([*MODELS, *WRITTEN])


@examples(60)
@given(NAMES, SEEDS)
def test_all_chips_together_make_what_one_makes(name: str, seed: int) -> None:
    """Each chip, given its parts of all operands as exchanges leave them, makes its part of every result."""
    rng = random.Random(seed)
    whole, chips = lowered(name, rng.choice(PRODUCTS)), rng.choice([(2,), (4,), (2, 2)])
    played = Played.of(whole, chips, random_choices(whole, chips, rng, even=True))

    played.check(list(product(*(range(count) for count in chips))))


@examples(100)
@given(NAMES, SEEDS)
def test_the_chip_with_most_makes_its_part_of_uneven_splits(name: str, seed: int) -> None:
    rng = random.Random(seed)
    whole, chips = lowered(name, rng.choice(PRODUCTS)), rng.choice([(2,), (3,), (5,), (2, 3)])
    played = Played.of(whole, chips, random_choices(whole, chips, rng, even=False))

    played.check([(0,) * len(chips)])
    assert int(played.dag.work.sum()) * prod(chips) >= int(whole.dag.work.sum())


def test_loops_are_split_in_every_way() -> None:
    """Otherwise the tests above would say little."""
    seen: set[tuple[str, str]] = set()
    for name in (*MODELS, *WRITTEN):
        whole = lowered(name)
        kernels = {kernel.name: kernel for kernel in whole.dag.kernels}
        for seed in range(4):
            for kernel, choice in random_choices(whole, (2, 2), random.Random(seed), even=True).items():
                seen |= {(kernels[kernel].op, kernels[kernel].loops[number].kind) for number in choice if number >= 0}

    assert {op for op, _ in seen} == set(SHIPPED) - {"Lapack", "LookupElements"}
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


def test_choices_hold_for_each_step_of_an_operator_where_they_differ() -> None:
    whole = lowered("interpolated")
    steps = [found for found in whole.maps.chosen if found.op_type == "Sample"]
    assert {found.name for found in steps} == {"channels", "images"}
    other = {"channels": "images", "images": "channels"}
    swapped = [replace(found, name=other[found.name]) if found in steps else found for found in whole.maps.chosen]

    choices = tuple(choices_of(swapped))
    maps = lower_to_maps(whole.library, TABLE, choices)

    assert list(maps.chosen) == swapped
