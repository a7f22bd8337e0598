"""Typed values: every value has an element type and a static shape, and the nodes agree with them."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.draft import Draft
from dfcompile.frontend.shapes import TensorType, infer_types


def checked_types(draft: Draft) -> Mapping[str, TensorType]:
    """Return element type and static shape of every value of a normalised draft.

    Raises:
        UserError: operands of a node do not fit together, or a shape depends on data.
    """
    infer_types(draft)
    types = infer_types(draft, strict=True)
    for node in draft.proto.graph.node:
        for name in filter(None, node.output):
            if name not in types or types[name].known_shape is None:
                raise UserError(f"node {node.name!r}: the shape of {name!r} depends on data against a static shape")
    return types
