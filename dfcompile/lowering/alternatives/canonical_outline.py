"""Level 1 of one operator without an SDFG: the canonical operators, arrays and views that an expansion makes of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.errors import InternalError
from dfcompile.frontend import CANONICAL
from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.nests.nest import array_of
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor
from dfcompile.plugins import faults_of


class Border(Struct, frozen=True, eq=False):
    """What an operator sees of the program around it.

    Attributes:
        names: of the program's arrays; what the operator adds has others.
        outputs: of these, those that leave the program.
        owned: of these, those that may become an output: written by an operator, and no view.
    """

    names: Collection[str] = frozenset()
    outputs: Collection[str] = frozenset()
    owned: Collection[str] = frozenset()


class CanonicalOutline(Struct, frozen=True, eq=False):
    """What an expansion makes of an operator.

    Attributes:
        nodes: canonical operators in the order in which they were added: what one reads, those before it write.
        arrays: that it adds, by name; its results are among them, unless they are views.
        views: of each view what it shows, an array or a view.
        given: arrays that leave the program in the place of a result.
    """

    nodes: tuple[CanonicalNode[CanonicalOperator], ...]
    arrays: Mapping[str, Array]
    views: Mapping[str, str]
    given: tuple[str, ...]


def canonical_outline(op: Operator, found: Expansion, border: Border) -> CanonicalOutline:
    """Return what an expansion makes of an operator of level 0.

    Raises:
        UserError: a form of the operator that the expansion does not take.
        PluginError: it is a third party's, and failed.
        VerificationError: it is ours, and what it makes is wrong.
    """
    builder = OutlineBuilder(op, border)
    found.apply(op, CanonicalFragment(builder, op))
    with faults_of("expansion", found.origin):
        builder.check_results()
    return builder.finish()


class OutlineBuilder:
    """Takes the place of a `ProgramBuilder`: remembers what an expansion of one operator adds.

    DaCe's objects take ten times as long, and to compare expansions nobody looks at them.
    """

    def __init__(self, op: Operator, border: Border) -> None:
        self._op, self._border = op, border
        self._tensors = {tensor.name: tensor for tensor in op.operands()}
        self._nodes: list[CanonicalNode[CanonicalOperator]] = []
        self._arrays: dict[str, Array] = {}
        self._views: dict[str, str] = {}
        self._given: list[str] = []
        self._written: set[str] = set()

    def free_name(self, name: str) -> str:
        """Return the name, or one with underscores behind it that no array has or is going to have."""
        while name in self._border.names or name in self._tensors:
            name += "_"
        return name

    def add_array(self, name: str, shape: Iterable[int], dtype: str, *, materialised: bool = False) -> Tensor:
        """Add a transient array (an output of the program is not transient) and return it.

        Raises:
            InternalError: the name is taken.
        """
        if name in self._tensors:
            raise InternalError(f"array {name!r}: added twice")
        tensor = Tensor(name, tuple(shape), dtype)
        is_output = name in self._border.outputs
        return self._added(tensor, is_transient=not is_output, is_materialised=materialised or is_output)

    def add_parameter(self, name: str, value: npt.NDArray[np.generic]) -> Tensor:
        """Add a constant array that lowering itself computed."""
        tensor = Tensor(name, value.shape, value.dtype.name, value, is_constant=True)
        return self._added(tensor, is_transient=False, is_materialised=True)

    def _added(self, tensor: Tensor, *, is_transient: bool, is_materialised: bool) -> Tensor:
        self._tensors[tensor.name] = tensor
        self._arrays[tensor.name] = array_of(tensor, is_transient=is_transient, is_materialised=is_materialised)
        return tensor

    def add_view(self, source: Tensor, name: str, shape: Iterable[int], dtype: str | None = None) -> Tensor:
        """Add a view; in the place of an output of the program its source leaves that; see `ProgramBuilder.add_view`.

        Raises:
            InternalError: the source is of the program's border, so that its place cannot be taken.
        """
        tensor = Tensor(name, tuple(shape), dtype or source.dtype, None, self._tensors[source.name].is_constant)
        if name in self._border.outputs:
            if not self._is_owned(source.name):
                raise InternalError(f"view {name!r}: of an array of the model's border")
            self._given.append(source.name)
            if source.name in self._arrays:
                self._added(self._tensors[source.name], is_transient=False, is_materialised=True)
        elif name in self._tensors:
            raise InternalError(f"view {name!r}: added twice")
        self._tensors[name] = tensor
        self._views[name] = source.name
        self._written.add(name)
        return tensor

    def can_be_view(self, source: Tensor, target: Tensor) -> bool:
        """Whether `add_view` can give ``source`` the name of ``target``."""
        if target.name not in self._border.outputs:
            return True
        return self._is_owned(source.name) and source.dtype == target.dtype

    def _is_owned(self, name: str) -> bool:
        if name in self._arrays:
            return self._arrays[name].is_transient
        return name in self._border.owned and name not in self._given

    def add_canonical(
        self, named: tuple[str, str], operator: CanonicalOperator, operands: Sequence[Tensor], results: Sequence[Tensor]
    ) -> None:
        """Remember a canonical operator; its results depend on parameters alone if all operands do."""
        for tensor in results:
            if tensor.name not in self._tensors:
                self.add_array(tensor.name, tensor.shape, tensor.dtype)
        read = tuple(self._tensors[tensor.name] for tensor in operands)
        written = tuple(self._tensors[tensor.name] for tensor in results)
        name, origin = named
        plain = tuple(Tensor(tensor.name, tensor.shape, tensor.dtype) for tensor in written)
        self._nodes.append(CanonicalNode(name, CANONICAL, type(operator).__name__, origin, read, plain, operator))
        self._written.update(tensor.name for tensor in written)
        if read and all(tensor.is_constant for tensor in read):
            for tensor in plain:
                self._tensors[tensor.name] = Tensor(tensor.name, tensor.shape, tensor.dtype, None, is_constant=True)

    def check_results(self) -> None:
        """Check that every result of the operator is there, as the operator has it.

        Raises:
            VerificationError: one is not written, or has another shape or element type.
        """
        for tensor in self._op.results():
            is_given = tensor.name in self._views and tensor.name in self._border.outputs
            if not is_given:
                self._op.check_result(tensor, self._tensors[tensor.name] if tensor.name in self._written else None)

    def finish(self) -> CanonicalOutline:
        """Return what was remembered."""
        return CanonicalOutline(tuple(self._nodes), self._arrays, self._views, tuple(self._given))
