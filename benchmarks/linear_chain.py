"""Small products of different sizes: every number of PEs and every few bytes of memory are another trade-off."""

from itertools import pairwise

import torch
from torch import nn

WIDTHS, ROWS = (9, 14, 11, 16, 7, 13, 10, 15, 8, 12, 17, 9, 14), 11


def model() -> nn.Module:
    """Return the chain."""
    return nn.Sequential(*(nn.Linear(*pair) for pair in pairwise(WIDTHS)))


def example_inputs() -> tuple[torch.Tensor, ...]:
    """Return what it takes."""
    return (torch.zeros(ROWS, WIDTHS[0]),)
