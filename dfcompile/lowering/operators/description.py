"""What documents and listings say of a canonical operator: what it computes and its fields, from its class."""

import inspect
import re
from dataclasses import dataclass

from dfcompile.lowering.operators.base import CanonicalOperator, schema_of

_SECTION = re.compile(r"^Attributes:\n(?P<fields>(?:    .*\n?|\n)*)", re.MULTILINE)
_FIELD = re.compile(r"^    (?P<name>\w+): (?P<meaning>.*(?:\n {5,}.*)*)", re.MULTILINE)


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
