"""Whether a report is what its schema says; each schema is checked once, which takes longer than any report."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema


@cache
def _validator(schema: Callable[[], dict[str, Any]]) -> jsonschema.Draft202012Validator:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def validate(report: object, schema: Callable[[], dict[str, Any]]) -> None:
    """Compare a report, as read from JSON, with what gives its schema.

    Raises:
        jsonschema.ValidationError: they differ.
    """
    _validator(schema).validate(report)
