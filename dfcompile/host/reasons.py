"""Why the machine refused something, in its own words."""


def reason_of(error: Exception) -> str:
    """Return the reason of an error in a line; words of the system are small, names in another text keep their case.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "A.txt")), reason_of(RuntimeError("loop from 'A'"))
    ('no such file or directory', "loop from 'A'")
    """
    said = error.strerror if isinstance(error, OSError) else None
    return said.lower() if said else " ".join(str(error).split()) or "unknown reason"
