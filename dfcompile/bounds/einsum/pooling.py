"""Pooling: windows that slide over channels, without weights."""

from msgspec import Struct

from dfcompile.bounds.einsum.convolution import Convolution


class Pooling(Struct, frozen=True):
    """A figure of each window of each channel: the largest word, the mean.

    Attributes:
        windows: a group per channel, with one channel and one filter; its weights are none.
    """

    windows: Convolution
