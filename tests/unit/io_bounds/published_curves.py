"""Curves that the tool of [huang24] gave; `tests/data/orojenesis/README.md` says how."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dfcompile.io_bounds.einsum.convolution import Convolution
from dfcompile.io_bounds.einsum.plain import PlainEinsum, PlainTensor, gemm
from dfcompile.io_bounds.einsum.window import WindowAxis

FOLDER = Path(__file__).parents[2] / "data" / "orojenesis"


@dataclass(frozen=True, slots=True)
class Published:
    """A shape with columns of buffer sizes and of words moved."""

    name: str
    shape: Convolution | PlainEinsum
    rows: npt.NDArray[np.int64]


def published(file: str) -> list[Published]:
    """Return what stands in a file of the folder."""
    found: dict[str, Published] = {}
    for section in (FOLDER / file).read_text().split("[")[1:]:
        head, *lines = section.strip().split("\n")
        name, text = head.split("] ")
        if lines[0].startswith("= "):
            rows = found[lines[0][2:]].rows
        else:
            rows = np.array([line.split(",") for line in lines], dtype=np.int64)
        found[name] = Published(name, shape_of(text), rows)
    return list(found.values())


def shape_of(text: str) -> Convolution | PlainEinsum:
    """Read a shape such as ``conv P=4 C=2 K=3``; dimensions that are not named are 1."""
    kind, *words = text.split()
    named = {name: int(value) for name, value in (word.split("=") for word in words)}

    def extent(name: str) -> int:
        return named.get(name, 1)

    if kind != "conv":
        return crossed_product(*map(extent, "HGMKN"))
    if set(named) <= {"P", "C", "K"}:
        return gemm(extent("P"), extent("C"), extent("K"))
    rows = WindowAxis(extent("P"), extent("R"), extent("Wstride"), extent("Wdilation"))
    columns = WindowAxis(extent("Q"), extent("S"), extent("Hstride"), extent("Hdilation"))
    return Convolution(extent("N"), 1, extent("C"), extent("K"), (rows, columns))


def crossed_product(heads: int, groups: int, m: int, k: int, n: int) -> PlainEinsum:
    """Return ``A[h, m, k] B[g, k, n] -> C[h, m, n]`` with heads and groups as loops of their own.

    This is what the tool of [huang24] computes for grouped products: each head with each group, hence ``groups`` times
    the work; `docs/bounds.md` says what is wrong with its figures.
    """
    return PlainEinsum(
        name=f"crossed {heads},{groups},{m},{k},{n}",
        ranks=("H", "M", "K", "N", "G"),
        extents=(heads, m, k, n, groups),
        tensors=(PlainTensor("A", (0, 1, 2)), PlainTensor("B", (4, 2, 3)), PlainTensor("C", (0, 1, 3), is_result=True)),
    )
