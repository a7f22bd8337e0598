"""What reports assume of complex numbers: what an operation on them costs."""

from collections.abc import Iterable

from dfcompile.report.figures import AssumptionSummary

NAME, SOURCE = "complex numbers", "dfcompile"


def complex_assumptions(types: Iterable[str]) -> tuple[AssumptionSummary, ...]:
    """Return what is assumed of the complex types of a model; nothing of a model without.

    >>> [found.value for found in complex_assumptions(["complex64"])]
    ['complex64 is one element of 8 bytes; an operation on it takes a cycle, as a real one does, not 2 to 8']
    """
    return tuple(
        AssumptionSummary(
            NAME,
            f"{name} is one element of {int(name.removeprefix('complex')) // 8} bytes; "
            "an operation on it takes a cycle, as a real one does, not 2 to 8",
            SOURCE,
        )
        for name in types
    )
