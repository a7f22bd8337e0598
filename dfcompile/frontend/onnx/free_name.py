"""Free names: a name near to a wanted one that nothing else has."""


def free_name(base: str, taken: set[str]) -> str:
    """Return the name, or one with a number behind it that is not taken, and take it.

    >>> free_name("relu", {"relu", "relu_1"})
    'relu_2'
    """
    candidate = base
    count = 0
    while candidate in taken:
        count += 1
        candidate = f"{base}_{count}"
    taken.add(candidate)
    return candidate
