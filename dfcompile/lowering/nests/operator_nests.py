"""What an expansion of a canonical operator builds, checked if it is a third party's."""

from collections.abc import Iterable

from msgspec import Struct

from dfcompile.canonical_dag import Kernel
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.map_fragment import ArrayMaker, MapFragment
from dfcompile.lowering.nests.check import CheckedFragment
from dfcompile.lowering.nests.nest import Nest, array_of
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor
from dfcompile.plugins import faults_of


class OperatorNests(Struct, frozen=True, eq=False):
    """A canonical operator as loop nests.

    Attributes:
        op: the operator.
        kernel: that all its nests belong to.
        nests: in an order in which they can run.
        added: arrays between them.
    """

    op: CanonicalNode[CanonicalOperator]
    kernel: Kernel
    nests: tuple[Nest, ...]
    added: tuple[Tensor, ...]


def nests_of(
    op: CanonicalNode[CanonicalOperator], found: Expansion, arrays: ArrayMaker, *, is_checked: bool
) -> tuple[Nest, ...]:
    """Return the nests that an expansion builds of an operator.

    Args:
        op: the operator.
        found: its expansion.
        arrays: where it adds arrays.
        is_checked: whether to look at every index.

    Raises:
        PluginError: the expansion is a third party's, and it raised or what it builds is wrong.
        VerificationError: what it builds is wrong, and it is ours: whoever made the operator made it wrong.
        UserError: a form of the operator that it does not take.
    """
    if not is_checked:
        fragment = MapFragment(op, arrays)
        found.apply(op, fragment)
        return tuple(fragment.nests)
    checked = CheckedFragment(op, arrays)
    found.apply(op, checked)
    with faults_of("expansion", found.origin):
        checked.check_results()
    return tuple(checked.nests)


class OperatorArrays:
    """The arrays of an operator alone, by name; operands and results count as materialised."""

    def __init__(self, op: CanonicalNode[CanonicalOperator]) -> None:
        self.arrays = {
            tensor.name: array_of(tensor, is_transient=False, is_materialised=True)
            for tensor in (*op.operands(), *op.results())
        }

    def new_array(self, name: str, shape: Iterable[int], dtype: str, *, materialised: bool) -> Tensor:
        """Add an intermediate array of that name, or one with underscores behind it, and return it."""
        while name in self.arrays:
            name += "_"
        tensor = Tensor(name, tuple(shape), dtype)
        self.arrays[name] = array_of(tensor, is_transient=True, is_materialised=materialised)
        return tensor
