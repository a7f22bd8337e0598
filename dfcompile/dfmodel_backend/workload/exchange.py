"""One exchange between chips: a step of what changes the layout of a tensor."""

from enum import StrEnum, unique

from msgspec import Struct

from dfcompile.dfmodel_backend.workload.array_layout import Layout


@unique
class ExchangeKind(StrEnum):
    """What chips do to change a layout."""

    SLICE = "slice"  # each keeps its part of what it has: free
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_REDUCE = "all-reduce"
    ALL_TO_ALL = "all-to-all"


class Exchange(Struct, frozen=True):
    """A collective on a tensor.

    Attributes:
        tensor: name.
        source: the kernel that makes it, in whose configuration it is exchanged.
        readers: kernels that need the layout that this leads to; none of an output of the model that is completed.
        kind: the collective.
        dimensions: of the network along which chips take part, counted from the innermost.
        before: layout along these dimensions, in words.
        after: layout along these dimensions, in words.
        message_bytes: of the tensor that the chips of one group have together at that step, at most [ko24].
        moved_bytes: that all chips together receive.
        time_ns: of it.
        layouts: before and after, along all dimensions.
    """

    tensor: str
    source: str
    readers: tuple[str, ...]
    kind: ExchangeKind
    dimensions: tuple[int, ...]
    before: str
    after: str
    message_bytes: int
    moved_bytes: int
    time_ns: float
    layouts: tuple[Layout, Layout]
