"""Time per byte of collectives on each shape of network [ko24, section 4]."""

from dfcompile.dfmodel_backend.design import Link

Ratio = float  # ns per byte


def all_reduce_ratio(link: Link, factor: float) -> Ratio:
    """Reduce-scatter and all-gather: each ``(N - 1) / N`` of the bytes around a ring or through a switch."""
    chips = link.chips
    if link.shape == "fc":
        return factor / (chips * link.gb_per_s)
    return factor * (chips - 1) / (chips * link.gb_per_s)


def all_gather_ratio(link: Link) -> Ratio:
    """Half of an all-reduce."""
    return all_reduce_ratio(link, 1.0)


def all_to_all_ratio(link: Link) -> Ratio:
    """Bytes over the bisection."""
    if link.shape == "r":
        return link.chips**2 / (8 * link.gb_per_s)
    if link.shape == "sw":
        return link.chips / (4 * link.gb_per_s)
    return 1 / link.gb_per_s


def all_to_all_ns(topology: str, links: tuple[Link, ...], pair_bytes: float, *, oldest: bool = False) -> float:
    """Return the time of an all-to-all among all chips, ``pair_bytes`` from each to each other.

    The slowest dimension: messages over its bisection, by its bisection bandwidth.
    """
    messages, bandwidths = _messages(topology, links), _bandwidth_factors(topology, links, oldest=oldest)
    return max(
        pair_bytes * count / (link.gb_per_s * factor)
        for link, count, factor in zip(links, messages, bandwidths, strict=True)
    )


def _messages(topology: str, links: tuple[Link, ...]) -> list[float]:
    everyone = 1
    for link in links:
        everyone *= link.chips
    if len(links) == 1 or topology in ("r_r", "r_r_r"):
        return [everyone**2 / 4] * len(links)
    counts, chips = [], 1
    for link in links:
        chips *= link.chips
        counts.append(chips**2 / 4)
    return counts


def _bandwidth_factors(topology: str, links: tuple[Link, ...], *, oldest: bool) -> list[float]:
    sizes = [link.chips for link in links]
    if topology == "r_r":
        return [2.0 * size for size in sizes]
    if topology == "r_r_r":
        x, y, z = sizes
        return [2 * x * y, 2 * x * z, 2 * y * z]
    factors: list[float] = [{"sw": link.chips, "fc": link.chips**2 / 4, "r": 2}[link.shape] for link in links]
    if oldest:
        factors[-1] = sizes[-1] / 4
    return factors
