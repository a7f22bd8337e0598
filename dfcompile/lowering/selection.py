"""Which expansion is taken for which operator."""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from dfcompile.errors import RegistrationError, UserError
from dfcompile.expansion_names import told_names
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.node import Node
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.options import Choice
from dfcompile.plugins import ImportFault, Plugin, missing


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
