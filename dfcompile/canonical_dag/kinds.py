"""The kinds of nodes of a canonical DAG."""

from enum import IntEnum, unique
from typing import assert_never


@unique
class NodeKind(IntEnum):
    """What a node does to its stream; a computational node has one rate ``R = O / I`` [dematteis23, section 3].

    ``I`` is the volume of *every* input edge in elements, ``O`` the volume of *every* output edge.
    """

    ELEMENTWISE = 0  # R = 1
    DOWNSAMPLER = 1  # R < 1: a reduction
    UPSAMPLER = 2  # R > 1: a replication or a gather
    SOURCE = 3  # a task without input edges, such as a fill; work O
    SINK = 4  # a task without output edges; work I
    BUFFER = 5  # memory: stores its inputs whole, then emits; no work, no processing element
    PSEUDO_SOURCE = 6  # marks the start of the graph; no work, no processing element
    PSEUDO_SINK = 7  # marks the end of the graph; no work, no processing element

    @property
    def is_computational(self) -> bool:
        """Whether a node of this kind occupies a processing element."""
        match self:
            case NodeKind.ELEMENTWISE | NodeKind.DOWNSAMPLER | NodeKind.UPSAMPLER | NodeKind.SOURCE | NodeKind.SINK:
                return True
            case NodeKind.BUFFER | NodeKind.PSEUDO_SOURCE | NodeKind.PSEUDO_SINK:
                return False
        assert_never(self)
