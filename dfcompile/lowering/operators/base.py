"""The base of canonical operators: frozen dataclasses whose fields are checked when one is made."""

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, lru_cache
from math import prod
from types import MappingProxyType
from typing import Self, TypeVar, cast, get_type_hints

from dfcompile.canonical_dag import LoopPart
from dfcompile.errors import OperatorFieldError, RegistrationError, UserError, nearest
from dfcompile.frontend import AttributeValue
from dfcompile.lowering.expressions import expression_tree, operand_names
from dfcompile.lowering.operators.field_kinds import FieldKind, kind_of
from dfcompile.lowering.operators.loop_nest import LoopNest
from dfcompile.lowering.tensor import Tensor

_SECTION = re.compile(r"^Attributes:\n(?P<fields>(?:    .*\n?|\n)*)", re.MULTILINE)
_FIELD = re.compile(r"^    (?P<name>\w+): (?P<meaning>.*(?:\n {5,}.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Contraction:
    """Products of matrices ``[m, k] x [k, n] -> [m, n]``; extents in elements.

    Attributes:
        outer: number of products.
        m: rows of each.
        k: the dimension that is summed over.
        n: columns of each.
    """

    outer: int
    m: int
    k: int
    n: int


@dataclass(frozen=True, slots=True)
class CanonicalOperator:
    """What one operator of level 1 computes, without its operands; to be derived from, as a frozen dataclass.

    The class's name is the operator's type. Its fields are of the types that `kind_of` lists; they are checked when an
    operator is made, so that no field is misspelt and none has a value that it must not have.
    """

    def __new__(cls, *values: object, **named: object) -> Self:
        """Make an operator of the fields' values.

        Raises:
            OperatorFieldError: there is no such field, or a field has no value.
        """
        schema = schema_of(cls)
        for name in named:
            if name not in schema.kinds:
                raise OperatorFieldError(f"{cls.__name__} has no field {name!r}{nearest(name, schema.kinds)}")
        if len(values) > len(schema.kinds):
            raise OperatorFieldError(f"{cls.__name__} has {len(schema.kinds)} fields against {len(values)} values")
        for position, name in schema.required:
            if position >= len(values) and name not in named:
                raise OperatorFieldError(f"{cls.__name__} has no value for field {name!r}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            OperatorFieldError: a field has a value that it must not have.
        """
        for name, kind in schema_of(type(self)).kinds.items():
            value = getattr(self, name)
            if not kind.holds(value):
                raise self.fault(f"field {name!r} is {value!r} against {kind}")

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), tuple(getattr(self, name) for name in schema_of(type(self)).kinds)

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check the fields against operands and results; an operator that can tell overrides it.

        Raises:
            OperatorFieldError: they contradict each other.
        """

    def contraction(self, operands: Sequence[Tensor], result: Tensor) -> Contraction | None:
        """Return the contraction; None of an operator that is element-wise to the DFModel back end.

        It is what `loop_nest` says if a loop there is a part of its dimension k.
        """
        nest = self.loop_nest(operands, result)
        if nest is None or all(loop.part is not LoopPart.K for loop in nest.loops.values()):
            return None
        parts = (LoopPart.OUTER, LoopPart.M, LoopPart.K, LoopPart.N)
        return Contraction(*(prod(one.extent for one in nest.loops.values() if one.part is part) for part in parts))

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest | None:  # noqa: ARG002
        """Return the loops that may be split over chips; None of an operator that does not say: every chip runs it.

        One that says it says in `on_share` what a share of it is.
        """
        return None

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self | None:  # noqa: ARG002
        """Return the operator that runs the first iterations of its loops on parts of its arrays.

        Those parts are what is left of each axis through which a loop moves. An operator whose fields do not depend on
        extents returns itself; None of one that does not say: every chip runs all of it.

        Args:
            operands: of the whole operator.
            result: of the whole operator.
            extents: of all loops of `loop_nest`, as many iterations as are left.
        """
        return None

    def attributes(self) -> dict[str, AttributeValue]:
        """Return the fields as JSON values by name; those that have their default are left out."""
        schema = schema_of(type(self))
        given = ((name, kind, getattr(self, name)) for name, kind in schema.kinds.items())
        defaults = schema.defaults
        changed = (one for one in given if one[0] not in defaults or not _is_same(one[2], defaults[one[0]]))
        return {name: cast("AttributeValue", kind.write(value)) for name, kind, value in changed}

    @classmethod
    def of_attributes(cls, attributes: Mapping[str, object]) -> Self:
        """Return the operator that `attributes` was asked of.

        Raises:
            OperatorFieldError: an attribute is no field, is missing or has a value that it must not have.
        """
        kinds = schema_of(cls).kinds
        return cls(**{name: kinds[name].read(value) if name in kinds else value for name, value in attributes.items()})

    def fault(self, found: str) -> OperatorFieldError:
        """Return the error that names this operator."""
        return OperatorFieldError(f"{type(self).__name__}: {found}")

    def check_operands(self, operands: Sequence[Tensor], least: int, most: int | None = None) -> Sequence[Tensor]:
        """Return the operands if they are as many as wanted: ``least`` unless ``most`` is given.

        Raises:
            OperatorFieldError: there are too few or too many.
        """
        most = least if most is None else most
        if not least <= len(operands) <= most:
            wanted = f"{least}" if most == least else f"{least} to {most}"
            raise self.fault(f"{len(operands)} operands against {wanted}")
        return operands

    def check_axis(self, name: str, axis: int, tensor: Tensor) -> None:
        """Check that a field, an axis counted from the front, is within the rank of an array.

        Raises:
            OperatorFieldError: it is not.
        """
        if not 0 <= axis < tensor.rank:
            raise self.fault(f"field {name!r} has axis {axis} against rank {tensor.rank} of {tensor}")

    def check_length(self, name: str, length: int) -> None:
        """Check that a field, a tuple, has as many items as wanted.

        Raises:
            OperatorFieldError: it has not.
        """
        value = getattr(self, name)
        if len(value) != length:
            raise self.fault(f"field {name!r} is {value!r} against {length} items")

    def check_expression(self, expression: str, operands_count: int) -> None:
        """Check that a field, Python source of what one iteration computes, names no operand that is not there.

        Raises:
            OperatorFieldError: it does, or cannot be parsed.
        """
        names = _one_letter_names(expression)
        if names is None:
            raise self.fault(f"field 'expression' is {expression!r} against an expression of Python")
        known = operand_names(operands_count)
        if not names <= set(known):
            found = min(names - set(known))
            raise self.fault(f"field 'expression' is {expression!r} with {found!r} against operands {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class AnyExtents(CanonicalOperator):
    """An operator whose fields do not depend on extents: a share of it is itself, on parts of its arrays."""

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the same operator."""
        return self


Canonical = TypeVar("Canonical", bound=CanonicalOperator)
Canonical_co = TypeVar("Canonical_co", bound=CanonicalOperator, covariant=True)


def read_operator(operator: type[Canonical], attributes: Mapping[str, object], name: str) -> Canonical:
    """Return the operator that a node of a program is.

    Args:
        operator: its class.
        attributes: of the node, as they are saved.
        name: of the node.

    Raises:
        UserError: an attribute is no field, is missing or has a value that it must not have; the message names it and
            the node.
    """
    try:
        return operator.of_attributes(attributes)
    except OperatorFieldError as error:
        raise UserError(f"node {name!r}: {error}") from error


def _is_same(value: object, default: object) -> bool:
    # 1 is equal to True and to 1.0, and -0.0 to 0.
    return type(value) is type(default) and value == default and repr(value) == repr(default)


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a canonical operator, in order.

    Attributes:
        kinds: by name.
        required: positions and names of those without default.
        defaults: of the others.
    """

    kinds: Mapping[str, FieldKind]
    required: tuple[tuple[int, str], ...]
    defaults: Mapping[str, object]


def schema_of(operator: type[CanonicalOperator]) -> Schema:
    """Return the fields of a canonical operator.

    Raises:
        RegistrationError: the class is no dataclass of its own, or a field is of a type that cannot be written.
    """
    return _schema_of(operator)  # type: ignore[arg-type]  # mypy takes the hash of instances for that of the class


@cache
def _schema_of(operator: type[CanonicalOperator]) -> Schema:
    where = f"canonical operator {operator.__module__}.{operator.__qualname__}"
    if not is_dataclass(operator) or "__dataclass_fields__" not in vars(operator):
        raise RegistrationError(f"{where}: a plain class against @dataclass(frozen=True, slots=True)")
    hints = get_type_hints(operator, include_extras=True)
    kinds = {}
    for field in fields(operator):
        try:
            kinds[field.name] = kind_of(hints[field.name])
        except RegistrationError as error:
            raise RegistrationError(f"{where}: field {field.name!r}: {error}") from error
    defaults = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(operator)
        if field.default is not MISSING or field.default_factory is not MISSING
    }
    required = tuple((position, name) for position, name in enumerate(kinds) if name not in defaults)
    return Schema(MappingProxyType(kinds), required, MappingProxyType(defaults))


@lru_cache(maxsize=4096)
def _one_letter_names(expression: str) -> frozenset[str] | None:
    """Return the names that stand for operands; names of functions and constants are longer."""
    try:
        tree = expression_tree(expression)
    except UserError:
        return None
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and len(node.id) == 1)


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A field of a canonical operator in words.

    Attributes:
        name: as in the class.
        values: that it can have.
        default: as in Python; empty if there is none.
        meaning: of the docstring; empty if it says nothing.
    """

    name: str
    values: str
    default: str
    meaning: str


def fields_of(operator: type[CanonicalOperator]) -> tuple[FieldDescription, ...]:
    """Return the fields of an operator in order."""
    schema = schema_of(operator)
    section = _SECTION.search(inspect.cleandoc(operator.__doc__ or ""))
    meanings = {} if section is None else dict(_FIELD.findall(section["fields"]))
    defaults = {name: repr(default) for name, default in schema.defaults.items()}
    texts = {name: " ".join(meanings.get(name, "").split()) for name in schema.kinds}
    return tuple(
        FieldDescription(name, str(kind), defaults.get(name, ""), texts[name]) for name, kind in schema.kinds.items()
    )
