"""Alternatives: every operator of a model under every known expansion, as the scopes of tasks that it would become."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.extraction.families import TaskFamily, divide, finest
from dfcompile.canonical_dag.extraction.flow import prove_streams, uses_of
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph
from dfcompile.errors import PluginError, UserError
from dfcompile.expansion_names import natural_order
from dfcompile.frontend import CANONICAL, ONNX, Program, element_kind
from dfcompile.host.stages import as_they_come
from dfcompile.lowering.alternatives.outlined import outline_of
from dfcompile.lowering.canonical_fragment import Border, CanonicalFragment
from dfcompile.lowering.expansion import Expansion, ExpansionTable
from dfcompile.lowering.nests.program import root_of
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.program_nodes import onnx_operators, operator_nodes
from dfcompile.lowering.tensor import Tensor
from dfcompile.plugins import faults_of
from dfcompile.records import replace

_LARGEST_TOLD_CONSTANT = 4096  # elements; two operators with larger constants count as different
_LEFT_OUT = "{}: left out of the bound over the known expansions"


class TaskScope(Struct, frozen=True):
    """The tasks of one map scope, all alike.

    Attributes:
        members: number of tasks.
        iterations: of each task: elements that it reads on every input edge.
        written: elements that each task writes.
        reads: arrays; whether a stream from some producer could be in the order that the task wants.
        write: array.
        can_send: whether the array could be a stream: complete element by element.
        is_stored: whether the array is in memory, whatever its tasks are: its expansion says so, or several scopes
            write it.
        visits_once: whether all of them together read no element twice.
        least_iterations: of a task, into however many tasks the scope is divided.
        least_written: elements that such a task writes.
    """

    members: int
    iterations: int
    written: int
    reads: tuple[tuple[str, bool], ...]
    write: str
    can_send: bool
    is_stored: bool
    visits_once: bool
    least_iterations: int
    least_written: int


class CanonicalAlternatives(Struct, frozen=True):
    """A canonical operator: its scopes, producers first, by name of the expansion."""

    op_type: str
    scopes: Mapping[str, tuple[TaskScope, ...]]


class OnnxAlternative(Struct, frozen=True):
    """An ONNX operator under one expansion: the canonical operators that it becomes, in the order of dependences.

    Attributes:
        name: of the expansion.
        operators: of level 1; operands of the ONNX operator are called ``x0``, ``x1``, ….
        results: array that holds each result of the ONNX operator, by its position.
    """

    name: str
    operators: tuple[CanonicalAlternatives, ...]
    results: Mapping[int, str]


class OperatorAlternatives(Struct, frozen=True):
    """An operator of the model and what its known expansions make of it.

    Attributes:
        origin: the user's operator.
        op_type: such as ``Conv``.
        inputs: array of each operand by its position; parameters are left out.
        outputs: array of each result by its position.
        expansions: those that take the operator as it is; equal operators share them.
    """

    origin: str
    op_type: str
    inputs: Mapping[int, str]
    outputs: Mapping[int, str]
    expansions: tuple[OnnxAlternative, ...]


class KnownAlternatives(Struct, frozen=True):
    """What the known expansions make of a model.

    Attributes:
        operators: of the model, in the order of dependences.
        left_out: one line for each expansion of a third party that failed.
    """

    operators: tuple[OperatorAlternatives, ...]
    left_out: tuple[str, ...]

    @property
    def least_scopes(self) -> int:
        """Scopes that the model becomes at least, whatever its expansions."""

        def least(alternative: OnnxAlternative) -> int:
            return sum(min(map(len, inner.scopes.values())) for inner in alternative.operators)

        return sum(min(map(least, op.expansions)) for op in self.operators)


def known_alternatives(program: Program, table: ExpansionTable) -> KnownAlternatives:
    """Return every operator of a program of level 0, in the order of dependences, under every known expansion.

    Raises:
        UserError: an operator that no expansion takes.
    """
    known: dict[tuple[object, ...], tuple[OnnxAlternative, ...]] = {}
    found = []
    left_out: dict[str, str] = {}  # by origin
    for op in as_they_come(onnx_operators(program), len(operator_nodes(program))):
        # What tells how an operator is lowered.
        operands = tuple(None if tensor is None else _told(tensor) for tensor in op.inputs)
        results = tuple(None if tensor is None else (tensor.shape, tensor.dtype) for tensor in op.outputs)
        key = op.op_type, repr(sorted(op.attributes.items())), operands, results
        if key not in known:
            known[key] = tuple(_onnx_alternatives(op, table, left_out))
        op.refuse_if(not known[key], f"no expansion for {op.op_type!r}")
        # What operators make of constants is an operand like any other: tasks send it.
        made = ((at, tensor) for at, tensor in enumerate(op.inputs) if tensor is not None)
        inputs = {at: tensor.name for at, tensor in made if tensor.name not in program.parameters}
        outputs = {at: tensor.name for at, tensor in enumerate(op.outputs) if tensor is not None}
        found.append(OperatorAlternatives(op.origin, op.op_type, inputs, outputs, known[key]))
    return KnownAlternatives(tuple(found), tuple(left_out.values()))


def _told(tensor: Tensor) -> tuple[object, ...]:
    """Return what counts of an operand: of large constants their name, but for those that are multiplied.

    Of real numbers nothing counts, of integers of a byte, which are no indices, whether they are all zero: zero points
    then need no task.
    """
    value: object = None
    if tensor.value is not None and tensor.elements <= _LARGEST_TOLD_CONSTANT:
        value = tensor.value.tobytes()
    elif tensor.value is not None and element_kind(tensor.dtype) not in "fc":
        value = bool(np.any(tensor.value)) if tensor.element_bytes == 1 else tensor.name
    return tensor.shape, tensor.dtype, tensor.is_constant, value


def _onnx_alternatives(op: Operator, table: ExpansionTable, left_out: dict[str, str]) -> Iterator[OnnxAlternative]:
    # Operands that no other writes, and results that leave no program: that may need a copy.
    alone = replace(op, inputs=_called("x", op.inputs), outputs=_called("y", op.outputs))
    for name, found in sorted(table.by_operator.get((ONNX, op.op_type), {}).items()):
        try:
            outline = found.outline(alone, Border())
            with faults_of("expansion", found.origin):  # what it built may be wrong only for those that come after it
                made = (_canonical_alternatives(each, table, outline, found, left_out) for each in outline.nodes)
                operators = tuple(made)
        except PluginError as error:
            left_out.setdefault(found.origin, _LEFT_OUT.format(error))
            continue
        except UserError:
            continue  # a form of the operator that this expansion does not take
        results = {at: f"y{at}" for at, tensor in enumerate(op.outputs) if tensor is not None}
        roots = {at: root_of(array, outline.views) for at, array in results.items()}
        yield OnnxAlternative(name, operators, MappingProxyType(roots))


def _called(letter: str, tensors: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    return tuple(None if tensor is None else replace(tensor, name=f"{letter}{at}") for at, tensor in enumerate(tensors))


def _canonical_alternatives(
    op: CanonicalNode[CanonicalOperator],
    table: ExpansionTable,
    outline: CanonicalFragment,
    maker: Expansion,
    left_out: dict[str, str],
) -> CanonicalAlternatives:
    scopes = {}
    registered = table.by_operator.get((CANONICAL, op.op_type), {})
    for name, found in sorted(registered.items(), key=lambda item: natural_order(item[0])):
        try:
            with faults_of("expansion", found.origin):
                made = outline_of(op, found, is_checked=not (found.is_own and maker.is_own))
                scopes[name] = _task_scopes(made, outline)
        except PluginError as error:
            left_out.setdefault(found.origin, _LEFT_OUT.format(error))
        except UserError:
            continue  # a form that it does not take, or more tasks than a DAG can hold
    op.refuse_if(not scopes, f"no expansion for {op.op_type!r}")
    return CanonicalAlternatives(op.op_type, MappingProxyType(scopes))


def _task_scopes(outline: LoweredGraph, maker: CanonicalFragment) -> tuple[TaskScope, ...]:
    families = divide(outline.scopes)
    uses = uses_of(families, outline.arrays)
    inner = [use for use in uses.values() if use.array.is_transient]
    proved = {(use.array.name, stream.consumer) for use in inner for stream in prove_streams(families, use)}
    found = []
    for number, family in enumerate(families):
        (write,) = family.scope.writes
        array = outline.arrays[write.array]
        root = root_of(write.array, maker.views)
        smallest = finest(family.scope)
        is_stored = len(uses[write.array].writers) > 1 or _is_stored(root, array, maker)
        found.append(
            TaskScope(
                members=family.members,
                iterations=prod(cut.size for cut in family.cuts),
                written=family.member(write).distinct() or 1,
                reads=tuple(_reads(number, family, outline.arrays, proved, maker.views)),
                write=root,
                can_send=not is_stored and not write.is_indirect and family.member(write).completion is not None,
                is_stored=is_stored or write.is_indirect,
                visits_once=all(
                    not read.is_indirect and read.over(family.scope.extents).is_injective for read in family.scope.reads
                ),
                least_iterations=prod(cut.size for cut in smallest.cuts),
                least_written=smallest.member(write).distinct() or 1,
            )
        )
    return tuple(found)


def _reads(
    number: int,
    family: TaskFamily,
    arrays: Mapping[str, Array],
    proved: set[tuple[str, int]],
    viewed: Mapping[str, str],
) -> Iterator[tuple[str, bool]]:
    by_array: dict[str, list[Access]] = {}
    for access in family.scope.reads:
        by_array.setdefault(access.array, []).append(access)
    for name, accesses in by_array.items():
        if arrays[name].is_transient:
            can_stream = (name, number) in proved
        else:  # whoever writes it: a stream carries every element once
            can_stream = all(not access.is_indirect and family.member(access).is_injective for access in accesses)
        yield root_of(name, viewed), can_stream


def _is_stored(root: str, array: Array, maker: CanonicalFragment) -> bool:
    if array.is_transient:
        return array.is_materialised
    made = maker.arrays.get(root)
    return made is not None and made.is_transient and made.is_materialised
