"""Expansions: named rewrites of one operator type to the next level, and which is taken for which operator."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Concatenate, Final, TypeAlias

from msgspec import Struct, field

from dfcompile.errors import RegistrationError, UserError
from dfcompile.expansion_names import told_names
from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.lowering.canonical_fragment import Border, CanonicalFragment
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.nests.check import check_built
from dfcompile.lowering.node import CanonicalNode, Node, Operator
from dfcompile.lowering.operators.base import Canonical, CanonicalOperator, schema_of
from dfcompile.options import Choice
from dfcompile.plugins import ImportFault, Plugin, PluginKind, faults_of, is_own, missing, name_of
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
        if self.condition is None:
            return False
        with faults_of("condition of expansion", self.origin):
            return bool(self.condition(op))


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


class ExpansionTable(Struct, frozen=True):
    """Every registered expansion by dialect, operator type and name; an argument of lowering, never global.

    The canonical operators that are known are those that an expansion is of.
    """

    plugins: tuple[Plugin[Expansion], ...]
    by_operator: Mapping[tuple[str, str], Mapping[str, Expansion]]
    operators: Mapping[str, type[CanonicalOperator]]
    faults: tuple[ImportFault, ...] = ()  # what could not be imported, and might have offered more

    @staticmethod
    def of(plugins: Iterable[Plugin[Expansion]], faults: tuple[ImportFault, ...] = ()) -> "ExpansionTable":
        """Index collected expansions.

        Raises:
            RegistrationError: two expansions of one operator type both claim to be its default, or are of two
                canonical operators of one name.
        """
        ordered = tuple(plugins)
        table: dict[tuple[str, str], dict[str, Expansion]] = {}
        operators: dict[str, type[CanonicalOperator]] = {}
        for found in (plugin.value for plugin in ordered):
            named = table.setdefault((found.dialect, found.op_type), {})
            rival = next((other for other in named.values() if other.is_default and found.is_default), None)
            if rival is not None:
                claims = f"claimed by {rival.module}.{rival.name} and by {found.module}.{found.name}"
                raise RegistrationError(f"default expansion of {found.op_type}: {claims} (only one can be the default)")
            named[found.name] = found
            if found.operator is not None and operators.setdefault(found.op_type, found.operator) != found.operator:
                claims = f"{operators[found.op_type].__module__!r} and by {found.operator.__module__!r}"
                told = f"canonical operator {found.op_type}: claimed by {claims}"
                raise RegistrationError(f"{told} (rename one or uninstall one)")
        return ExpansionTable(ordered, table, operators, faults)

    def offering(self, names: Collection[str]) -> "ExpansionTable":
        """Return the table with those values of parametric expansions alone that are named."""
        left = (plugin for plugin in self.plugins if not plugin.value.values or plugin.value.name in names)
        return ExpansionTable.of(left, self.faults)

    def op_types(self, dialect: str) -> tuple[str, ...]:
        """Return the operator types of a dialect that have an expansion."""
        return tuple(sorted(op_type for known, op_type in self.by_operator if known == dialect))

    def check(self, choice: Choice) -> None:
        """Check that a choice names an operator type and an expansion that exist.

        Raises:
            UserError: it does not; the message has the nearest one.
        """
        of_type = (named for (_, op_type), named in self.by_operator.items() if op_type == choice.op_type)
        names = {name for named in of_type for name in named}
        if not names:
            hint = missing(choice.op_type, {op_type for _, op_type in self.by_operator}, self.faults)
            raise UserError(f"expansion '{choice}': no operator type {choice.op_type!r}{hint}")
        if choice.name not in names:
            hint = missing(choice.name, told_names(names), self.faults)
            raise UserError(f"expansion '{choice}': {choice.op_type} has no {choice.name!r}{hint}")

    def select(self, op: Node, choices: Iterable[Choice]) -> Expansion:
        """Return the expansion of one operator: the choice that fits it best, of equals the first, else the default.

        The default is the expansion whose condition the operator meets, else the one without a condition.

        Raises:
            UnsupportedOpError: there is none, or several and no default.
            RegistrationError: the operator meets the conditions of two.
        """
        named = self.by_operator.get((op.dialect, op.op_type))
        if named is None:
            hint = missing(op.op_type, self.op_types(op.dialect), self.faults)
            raise op.unsupported(f"no expansion for {op.op_type!r}{hint}")
        fits = ((choice.fit(op.op_type, op.origin, op.name), choice.name) for choice in choices if choice.name in named)
        chosen = min(((fit, name) for fit, name in fits if fit is not None), key=lambda each: each[0], default=None)
        if chosen is not None:
            return named[chosen[1]]
        met = [found for found in named.values() if found.is_wanted(op)]
        if len(met) > 1:
            claims = " and by ".join(f"{found.module}.{found.name}" for found in met[:2])
            told = f"node {op.origin!r}: default expansion of {op.op_type}: claimed by {claims}"
            raise RegistrationError(f"{told}, whose conditions it meets (name one with --expand)")
        default = met or [found for found in named.values() if found.is_default or len(named) == 1]
        if not default:
            raise op.unsupported(f"no default among the expansions {', '.join(sorted(named))} (name one with --expand)")
        return default[0]


OLDER_GROUP = "dfcompile.lowering"  # of expansions and passes together
EXPANSIONS: Final = PluginKind(
    "expansion",
    Expansion,
    "dfcompile.lowering.expansions",
    "dfcompile.expansions",
    key=str,
    older_groups=(OLDER_GROUP,),
)


def registered_expansions() -> ExpansionTable:
    """Return every expansion of this package and of the entry points of ``dfcompile.expansions``.

    Raises:
        RegistrationError: two modules claim one expansion, or both claim to be the default.
    """
    found = EXPANSIONS.collect()
    return ExpansionTable.of(found.plugins, found.faults)
