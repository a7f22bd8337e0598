"""Statistics per element: a BatchNormalization that is not ``spatial``, of operator sets before 9, over flat data."""

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper

from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.free_name import free_name


def with_one_normalisation(nodes: Iterable[onnx.NodeProto]) -> tuple[list[onnx.NodeProto], dict[str, Constant]]:
    """Return nodes whose normalisations all have statistics per channel, and constants that these read.

    ``y = BatchNormalization<spatial=0>(x[n, c, d], s[c, d], …)`` becomes ``f = Flatten(x); t = Reshape(s, [-1]); …
    g = BatchNormalization(f, t, …); y = Reshape(g, Shape(x))``: every element is a channel.

    Args:
        nodes: of operator set 7 or later.
    """
    every = list(nodes)
    taken = {name for node in every for name in (*node.input, *node.output)}
    constants: dict[str, Constant] = {}
    found: list[onnx.NodeProto] = []
    for node in every:
        is_spatial = next((entry.i for entry in node.attribute if entry.name == "spatial"), 1)
        if node.op_type != "BatchNormalization" or is_spatial or len(node.input) != 5 or any(node.output[1:]):
            found.append(node)
            continue
        row = free_name(f"{node.output[0]}.row", taken)
        constants[row] = np.array([-1], np.int64)
        data, *statistics = node.input
        flat = [free_name(f"{node.output[0]}.{part}", taken) for part in ("flat", "scale", "bias", "mean", "variance")]
        whole, shape = (free_name(f"{node.output[0]}.{part}", taken) for part in ("normalised", "shape"))
        found.append(helper.make_node("Flatten", [data], flat[:1], axis=1))
        found += [
            helper.make_node("Reshape", [name, row], [made]) for name, made in zip(statistics, flat[1:], strict=True)
        ]
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        del kept.attribute[:]
        kept.attribute.extend(entry for entry in node.attribute if entry.name != "spatial")
        kept.input[:], kept.output[:] = flat, [whole]
        found.append(kept)
        found.append(helper.make_node("Shape", [data], [shape]))
        found.append(helper.make_node("Reshape", [whole, shape], node.output[:1]))
    return found, constants
