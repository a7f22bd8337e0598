"""Free names: a name near to a wanted one that nothing else has."""


def free_name(base: str, taken: set[str], counts: dict[str, int] | None = None) -> str:
    """Return the name, or one with a number behind it that is not taken, and take it.

    Args:
        base: the name.
        taken: names that others have.
        counts: numbers so far by name, which grow: of thousands that want one name, none tries all numbers again.

    >>> free_name("relu", {"relu", "relu_1"})
    'relu_2'
    """
    counts = {} if counts is None else counts
    count = counts.get(base, 0)
    candidate = f"{base}_{count}" if count else base
    while candidate in taken:
        count += 1
        candidate = f"{base}_{count}"
    counts[base] = count
    taken.add(candidate)
    return candidate
