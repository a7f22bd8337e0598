"""Amounts for people: SI prefixes for work, binary ones for bytes."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SI = ("", "k", "M", "G", "T", "P", "E")


def binary(amount: float) -> str:
    """Write bytes with a binary prefix.

    >>> binary(1023), binary(2**30)
    ('1023 B', '1.0 GiB')
    """
    at = 0
    while at + 1 < len(_BINARY) and amount >= 1024:
        amount, at = amount / 1024, at + 1
    return f"{amount:.0f} {_BINARY[at]}" if at == 0 else f"{amount:.1f} {_BINARY[at]}"


def decimal(amount: float) -> str:
    """Write an amount with a decimal prefix.

    >>> decimal(8_030_261_248), decimal(999)
    ('8.03 G', '999')
    """
    at = 0
    while at + 1 < len(_SI) and amount >= 1000:
        amount, at = amount / 1000, at + 1
    return f"{amount:.0f}" if at == 0 else f"{amount:.2f} {_SI[at]}"
