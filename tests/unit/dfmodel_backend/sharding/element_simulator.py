"""Plays all chips of a sharded program element by element: who has which value, what must move, what comes out.

Knows elements alone: of the package it takes the decision, which loop of each kernel is split along which dimension and
the steps by which layouts change, and of a layout the function that says where an element is.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from dfcompile.dfmodel_backend import TensorKind
from dfcompile.dfmodel_backend.inter_chip.conversions import Step
from dfcompile.dfmodel_backend.sharding.graphs import Choice, Sharding, SplitGraph
from dfcompile.dfmodel_backend.workload.graph import Layout, Partial, Split
from tests.unit.dfmodel_backend.sharding.tiny_programs import ELEMENT_BYTES, Integers, Meaning, Program

Chip = tuple[int, ...]
Held = dict[Chip, dict[int, int]]  # value of each element by its offset, per chip

NEUTRAL = {"add": 0, "maximum": -(2**62)}


@dataclass(slots=True)
class Played:
    """What was seen."""

    message_bytes: int = 0
    moved_bytes: int = 0
    most_bytes: dict[str, int] = field(default_factory=dict)  # of each tensor on the chip with most of it
    outputs: dict[str, dict[int, int]] = field(default_factory=dict)


class ElementSimulator:
    """Plays a program on the chips of a system under a sharding."""

    def __init__(self, program: Program, split: SplitGraph, sharding: Sharding) -> None:
        self._program = program
        self._split = split
        self._sharding = sharding
        self._counts = split.chips
        self._chips: list[Chip] = list(product(*(range(count) for count in split.chips)))
        self._sizes = {tensor.name: tensor.elements for tensor in program.graph.tensors}
        self._copies: dict[str, list[Held]] = {}
        self.played = Played()

    def run(self, values: dict[str, Integers]) -> Played:
        """Play all kernels from values of inputs and weights."""
        for tensor in self._program.graph.tensors:
            if not tensor.source:
                share = self._outside(tensor.name, values[tensor.name])
                self.played.most_bytes[tensor.name] = max(len(held) for held in share.values()) * ELEMENT_BYTES
        for kernel in self._program.graph.kernels:
            made = self._compute(kernel.name, kernel.inputs)
            self._exchange(kernel.outputs[0], made, self._program.meanings[kernel.name].combine)
        return self.played

    def _outside(self, name: str, values: Integers) -> Held:
        """Lay an input or a weight where its readers will need it, and nowhere else."""
        held: Held = {chip: {} for chip in self._chips}
        for kernel in self._program.graph.kernels:
            meaning = self._program.meanings[kernel.name]
            for place, read in enumerate(kernel.inputs):
                if read == name:
                    for chip in self._chips:
                        mine = meaning.reads[place][self._iterations(kernel.name, chip)]
                        held[chip].update((int(offset), int(values[offset])) for offset in mine)
        self._copies[name] = [held]
        return held

    def _iterations(self, kernel: str, chip: Chip) -> Integers:
        """Return the iterations of a kernel that a chip runs."""
        meaning, choice = self._program.meanings[kernel], self._sharding[kernel]
        loops = next(one.loops for one in self._program.graph.kernels if one.name == kernel)
        mine = np.ones(meaning.space, bool)
        for number in dict.fromkeys(number for number in choice if number >= 0):
            axis = meaning.loops.index(loops[number].name)
            place, length = np.arange(meaning.space[axis]), meaning.space[axis]
            own = np.ones(meaning.space[axis], bool)
            for dimension in range(len(choice) - 1, -1, -1):
                if choice[dimension] == number:
                    length = -(-length // self._counts[dimension])
                    own &= place // length == chip[dimension]
                    place = place % length
            shape = [1] * len(meaning.space)
            shape[axis] = -1
            mine &= own.reshape(shape)
        return np.flatnonzero(mine.ravel())

    def _compute(self, kernel: str, reads: tuple[str, ...]) -> Held:
        """Run a kernel on every chip from what it holds; every element that it needs must be in one of its copies."""
        meaning = self._program.meanings[kernel]
        made: Held = {}
        for chip in self._chips:
            mine = self._iterations(kernel, chip)
            terms = np.ones(len(mine), np.int64)
            for place, name in enumerate(reads):
                needed = meaning.reads[place][mine].tolist()
                copy = next((held[chip] for held in self._copies[name] if set(needed) <= set(held[chip])), None)
                assert copy is not None, f"{kernel} on {chip}: {name} is not there"
                terms = terms * np.array([copy[offset] for offset in needed], np.int64)
            made[chip] = {}
            for offset, term in zip(meaning.writes[mine].tolist(), terms.tolist(), strict=True):
                known = made[chip].get(offset)
                made[chip][offset] = term if known is None else _combined(meaning, known, term)
        return made

    def _exchange(self, name: str, made: Held, combine: str) -> None:
        tensor = next(one for one in self._program.graph.tensors if one.name == name)
        readers = tuple(self._sharding[use.kernel] for use in tensor.uses)
        share = self._split.tensor_share(tensor, self._sharding[tensor.source], readers)
        self._check_held(name, made, share.given, combine)
        copies: dict[Layout, Held] = {share.given: made}
        for way in share.ways:
            for step in way:
                copies[step.after] = self._play(step, copies[step.before], self._sizes[name], combine)
        complete = [held for layout, held in copies.items() if not _partial(layout)]
        self._copies[name] = complete
        self.played.most_bytes[name] = ELEMENT_BYTES * max(
            len(held[chip]) for layout in (share.given, *share.targets) for held in [copies[layout]] for chip in held
        )
        if tensor.kind is TensorKind.OUTPUT:
            found: dict[int, int] = {}
            for chip in self._chips:
                for offset, value in complete[0][chip].items():
                    assert found.setdefault(offset, value) == value
            assert len(found) == self._sizes[name], f"{name}: not all of it is anywhere"
            self.played.outputs[name] = found

    def _check_held(self, name: str, held: Held, layout: Layout, combine: str) -> None:
        for chip in self._chips:
            claimed = self._claimed(chip, layout, self._sizes[name])
            if _partial(layout):
                assert set(held[chip]) <= claimed
                for offset in claimed:  # a chip without iterations has neutral elements
                    held[chip].setdefault(offset, NEUTRAL[combine])
            else:
                assert set(held[chip]) == claimed, f"{name} on {chip}: not what {layout} says"

    def _claimed(self, chip: Chip, layout: Layout, elements: int) -> set[int]:
        """Return the elements that a chip has under a layout."""
        place = np.arange(elements)
        mine = np.ones(elements, bool)
        for dimension, held in enumerate(layout):
            if isinstance(held, Split):
                left = place
                for modulus in held.moduli:
                    left = left % modulus
                mine &= left // held.block == chip[dimension]
        return set(np.flatnonzero(mine).tolist())

    def _play(self, step: Step, before: Held, elements: int, combine: str) -> Held:
        """Give every chip what it has after a step, from chips of its group alone."""
        after: Held = {chip: {} for chip in self._chips}
        moved = 0
        largest = 0
        for group in self._groups(step.dimensions):
            largest = max(largest, len({offset for chip in group for offset in self._had(chip, step, elements)}))
            for chip in group:
                for offset in self._claimed(chip, step.after, elements):
                    has, value, received = self._received(chip, group, offset, step, before, combine)
                    assert has, f"{step.kind}: nobody has element {offset}"
                    after[chip][offset] = value
                    moved += received
            if _partial_along(step) and not _splits_along(step):
                # An all-reduce: a chip adds up each element and hands the sum on to all others.
                moved -= (len(group) - 1) * (len(group) - 2) * len(after[group[0]])
        assert moved * ELEMENT_BYTES == step.moved_bytes
        if moved:
            assert largest * ELEMENT_BYTES == step.message_bytes
            self.played.moved_bytes += moved * ELEMENT_BYTES
            self.played.message_bytes += largest * ELEMENT_BYTES
        return after

    def _had(self, chip: Chip, step: Step, elements: int) -> set[int]:
        return self._claimed(chip, step.before, elements)

    def _received(
        self, chip: Chip, group: list[Chip], offset: int, step: Step, before: Held, combine: str
    ) -> tuple[bool, int, int]:
        """Return whether an element can be had, its value, and how many values of it a chip must get from others."""
        if _partial_along(step):
            value = NEUTRAL[combine]
            for other in group:
                if offset in before[other]:
                    value = _combined_by(combine, value, before[other][offset])
            return True, value, len(group) - 1
        if offset in before[chip]:
            return True, before[chip][offset], 0
        owner = next((other for other in group if offset in before[other]), None)
        return (True, before[owner][offset], 1) if owner is not None else (False, 0, 0)

    def _groups(self, dimensions: tuple[int, ...]) -> list[list[Chip]]:
        groups: dict[Chip, list[Chip]] = {}
        for chip in self._chips:
            key = tuple(-1 if dimension in dimensions else at for dimension, at in enumerate(chip))
            groups.setdefault(key, []).append(chip)
        return list(groups.values())


def _partial(layout: Layout) -> bool:
    return any(isinstance(held, Partial) for held in layout)


def _partial_along(step: Step) -> bool:
    return any(isinstance(step.before[dimension], Partial) for dimension in step.dimensions)


def _splits_along(step: Step) -> bool:
    return any(isinstance(step.after[dimension], Split) for dimension in step.dimensions)


def _combined(meaning: Meaning, one: int, other: int) -> int:
    return _combined_by(meaning.combine, one, other)


def _combined_by(combine: str, one: int, other: int) -> int:
    return one + other if combine == "add" else max(one, other)


def reference(program: Program, values: dict[str, Integers]) -> dict[str, Integers]:
    """Return the values of all arrays, as one chip computes them."""
    found = dict(values)
    for kernel in program.graph.kernels:
        meaning = program.meanings[kernel.name]
        (name,) = kernel.outputs
        elements = next(tensor.elements for tensor in program.graph.tensors if tensor.name == name)
        result = np.full(elements, NEUTRAL[meaning.combine], np.int64)
        terms = meaning.values([found[read] for read in kernel.inputs])
        (np.add if meaning.combine == "add" else np.maximum).at(result, meaning.writes, terms)
        found[name] = result
    return found


def every_choice(split: SplitGraph) -> list[dict[str, Choice]]:
    """Return every sharding of a graph."""
    names = [kernel.name for kernel in split.graph.kernels]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*(split.choices[name] for name in names))]
