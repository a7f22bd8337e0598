"""Pooling: windows that slide over channels, without weights."""

from dataclasses import dataclass

from dfcompile.bounds.einsum.convolution import Convolution


@dataclass(frozen=True, slots=True)
class Pooling:
    """A figure of each window of each channel: the largest word, the mean.

    Attributes:
        windows: a group per channel, with one channel and one filter; its weights are none.
    """

    windows: Convolution
