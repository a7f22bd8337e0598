"""Expansions: named rewrites of one operator type to the next level."""

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Concatenate, TypeAlias

from msgspec import Struct, field

from dfcompile.errors import RegistrationError
from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.lowering.canonical_fragment import Border, CanonicalFragment
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.nests.check import check_built
from dfcompile.lowering.node import CanonicalNode, Node, Operator
from dfcompile.lowering.operators.base import Canonical, CanonicalOperator, schema_of
from dfcompile.plugins import faults_of, is_own, name_of
from dfcompile.records import replace

OnnxRewrite: TypeAlias = Callable[[Operator, CanonicalFragment], None]
CanonicalRewrite: TypeAlias = Callable[[CanonicalNode[Canonical], MapFragment], None]
ParametricRewrite: TypeAlias = Callable[Concatenate[CanonicalNode[Canonical], MapFragment, ...], None]
Condition: TypeAlias = Callable[[Operator], bool]
Default: TypeAlias = bool | Callable[..., bool]  # always, or under a condition
CanonicalCondition: TypeAlias = Callable[[CanonicalNode[Canonical]], bool]


class Expansion(Struct, frozen=True):
    """A named rewrite of one operator type; a value, found by the collector.

    Attributes:
        dialect: of the operator: ``onnx`` (rewritten to canonical operators) or ``canonical`` (to map scopes).
        op_type: such as ``MatMul``.
        name: such as ``mv``; unique per operator type.
        rewrite: the function that was decorated, called with the operator and a fragment of its dialect.
        source: citation key of where it comes from.
        is_default: whether it is taken when the user names none.
        module: where it is defined.
        condition: the operators for which it is taken instead of the default when the user names none; ``None``: none.
        operator: class of the canonical operator; ``None`` of an ONNX operator.
        runs_only: whether what it makes can be run but not scheduled: calls of libraries.
        values: of the rewrite's parameter, by its name, if it has one (see `parametric_expansion`).
    """

    dialect: str
    op_type: str
    name: str
    rewrite: Callable[..., None]
    source: str
    is_default: bool
    module: str
    condition: Callable[..., bool] | None = None
    operator: type[CanonicalOperator] | None = None
    runs_only: bool = False
    values: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        return f"{self.dialect}.{self.op_type}={self.name}"

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]

    @property
    def origin(self) -> str:
        """Module and name of the function, such as ``mylab.matmul_rows.rows``."""
        return f"{self.module}.{name_of(self.rewrite)}"

    @property
    def is_own(self) -> bool:
        """Whether it is dfcompile's."""
        return is_own(self.module)

    def outline(self, op: Operator, border: Border) -> CanonicalFragment:
        """Return what it makes of an operator of level 0.

        Raises:
            UserError: a form of the operator that it does not take.
            PluginError: it is a third party's, and it raised or what it makes is wrong.
            VerificationError: it is ours, and what it makes is wrong.
        """
        fragment = CanonicalFragment(op, border)
        self._rewrite(op, fragment)
        with faults_of("expansion", self.origin):
            fragment.check_results()
        return fragment

    def nests(self, op: CanonicalNode[CanonicalOperator], taken: Container[str], *, is_checked: bool) -> MapFragment:
        """Return what it makes of an operator of level 1.

        Args:
            op: the operator.
            taken: names that its arrays must not have.
            is_checked: whether to look at every index.

        Raises:
            UserError: a form of the operator that it does not take.
            PluginError: it is a third party's, and it raised or what it builds is wrong.
            VerificationError: what it builds is wrong, and it is ours: whoever made the operator made it wrong.
        """
        fragment = MapFragment(op, taken)
        self._rewrite(op, fragment)
        if is_checked:
            with faults_of("expansion", self.origin):
                check_built(op, fragment.nests)
        return fragment

    def _rewrite(self, op: Node, fragment: CanonicalFragment | MapFragment) -> None:
        """Call the function.

        Raises:
            PluginError: the function of a third party raised.
            UnsupportedOpError: what it makes for the operator, such as the numbers of its elements, needs more memory
                than there is.
        """
        try:
            with faults_of("expansion", self.origin):
                self.rewrite(op, fragment, **self.values)
        except MemoryError as error:
            raise op.unsupported(
                f"found sizes whose lowering by {self.name!r} needs more memory than there is"
            ) from error

    def is_wanted(self, op: Node) -> bool:
        """Return whether the operator meets the condition under which this is the default.

        Raises:
            PluginError: the condition of a third party raised.
        """
        with faults_of("condition of expansion", self.origin):
            return self.condition is not None and bool(self.condition(op))


def expansion(
    operator: type[Canonical],
    name: str,
    *,
    source: str,
    default: bool | CanonicalCondition[Canonical] = False,
    runs_only: bool = False,
) -> Callable[[CanonicalRewrite[Canonical]], Expansion]:
    """Make an `Expansion` of a canonical operator from a function; importing it changes nothing anywhere.

    Args:
        operator: class of the canonical operator, such as ``MatMul``; of `dfcompile.lowering.operators` or your own.
        name: of the expansion, as the user writes it in ``--expand``.
        source: citation key, listed in docs/references.md.
        default: taken when the user names none: always, or instead of that one for the operators of a condition; the
            only expansion of an operator is its default anyway.
        runs_only: what it makes can be run but not scheduled, since it calls a library (`MapFragment.call`).

    Raises:
        RegistrationError: it is no class of a canonical operator.
    """
    if not (isinstance(operator, type) and issubclass(operator, CanonicalOperator)):
        wanted = "a class of dfcompile.lowering.operators or your own"
        raise RegistrationError(f"expansion {name!r}: operator {operator!r} against {wanted}")
    schema_of(operator)
    return _decorator((CANONICAL, operator.__name__, name), source, operator, default=default, runs_only=runs_only)


def parametric_expansion(
    operator: type[Canonical], name: str, *, source: str, parameter: str, values: Iterable[int]
) -> Callable[[ParametricRewrite[Canonical]], tuple[Expansion, ...]]:
    """Make an `Expansion` for each value of a parameter, called such as ``split-k{parts=8}``.

    Each is one more expansion of the operator: it is named, chosen and bounded like any other. The automatic choice
    looks at the values whose tasks suit the number of processing elements.

    Args:
        operator: class of the canonical operator.
        name: without the value.
        source: citation key.
        parameter: of the function, after the operator and the fragment.
        values: that it may have, from the fewest tasks to the most.

    Raises:
        RegistrationError: it is no class of a canonical operator.
    """

    def decorate(rewrite: ParametricRewrite[Canonical]) -> tuple[Expansion, ...]:
        named = {value: expansion(operator, f"{name}{{{parameter}={value}}}", source=source) for value in values}
        return tuple(replace(of(rewrite), values=MappingProxyType({parameter: value})) for value, of in named.items())

    return decorate


def onnx_expansion(
    op_type: str, name: str, *, source: str = "onnx", default: bool | Condition = False, runs_only: bool = False
) -> Callable[[OnnxRewrite], Expansion]:
    """Make an `Expansion` of an ONNX operator from a function; see `expansion`."""
    return _decorator((ONNX, op_type, name), source, None, default=default, runs_only=runs_only)


def _decorator(
    named: tuple[str, str, str], source: str, kind: type[CanonicalOperator] | None, *, default: Default, runs_only: bool
) -> Callable[[Callable[..., None]], Expansion]:
    def decorate(rewrite: Callable[..., None]) -> Expansion:
        condition = None if isinstance(default, bool) else default
        return Expansion(*named, rewrite, source, default is True, rewrite.__module__, condition, kind, runs_only)

    return decorate
