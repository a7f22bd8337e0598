"""Initial weights of networks for images.

By PyTorch's own rule values become smaller from layer to layer: a deep network without trained weights answers with its
last bias, whatever it is shown, and a comparison of its outputs says nothing.
"""

from torch import nn


def he(network: nn.Module) -> nn.Module:
    """Draw the weights of products so that values stay as large behind each of them and its ReLU [He et al., 2015]."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return network
