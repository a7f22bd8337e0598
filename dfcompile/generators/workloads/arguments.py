"""Checks of the arguments of generators."""

from dfcompile.errors import UserError

LARGEST = 2**62  # dimensions are 64-bit numbers in design files
LARGEST_GRAPH = 10**6  # kernels


def check_positive(workload: str, **arguments: int) -> None:
    """Check that every argument is at least 1 and can be written to a design file.

    Raises:
        UserError: one is not; the message names it.
    """
    for name, value in arguments.items():
        if value < 1:
            raise UserError(f"{workload}: found {name} {value} against at least 1")
        if value > LARGEST:
            raise UserError(f"{workload}: found {name} {value} against at most {LARGEST}")


def check_kernels(workload: str, kernels: int) -> None:
    """Check that a graph is not too large to be built.

    Raises:
        UserError: it is.
    """
    if kernels > LARGEST_GRAPH:
        raise UserError(f"{workload}: found a graph of {kernels} kernels against at most {LARGEST_GRAPH}")


def share(total: int, parts: int) -> float:
    """Return one of equal parts: an integer where there is one."""
    return total // parts if total % parts == 0 else total / parts
