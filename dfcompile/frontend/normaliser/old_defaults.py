"""What operators of earlier operator sets mean by default, as attributes that say so in later ones."""

from collections.abc import Iterable, Iterator, Mapping

import onnx
from onnx import helper

# Version since which the default is another one, and what it was before.
_CHANGED: Mapping[str, tuple[int, Mapping[str, str | int]]] = {
    # Upsample became it. Element i of the result is element i / scale of the data; between two of these the one behind
    # where an axis shrinks, else the one before: "simple", as onnxruntime calls it.
    "Resize": (11, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "simple"}),
    "DFT": (20, {"axis": 1}),
}


def with_old_defaults(nodes: Iterable[onnx.NodeProto], opset: int) -> Iterator[onnx.NodeProto]:
    """Yield nodes that say what was the default in their operator set, which ONNX's version converter forgets.

    ``Resize(x, , scales)`` becomes ``Resize<coordinate_transformation_mode="asymmetric", …>(x, , scales)``.

    Args:
        nodes: converted to a later operator set, or not; not changed.
        opset: version of the operators that they were read as.
    """
    for node in nodes:
        before, defaults = _CHANGED.get(node.op_type, (0, {}))
        given = {attribute.name for attribute in node.attribute}
        missing = [name for name in defaults if name not in given] if opset < before else []
        if not missing:
            yield node
            continue
        explicit = onnx.NodeProto()
        explicit.CopyFrom(node)
        explicit.attribute.extend(helper.make_attribute(name, defaults[name]) for name in missing)
        yield explicit
