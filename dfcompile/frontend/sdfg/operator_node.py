"""The operator node: how an ONNX operator or a canonical operator stands in an SDFG, and the types of its arrays."""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from typing import ClassVar

import dace
import numpy as np
from dace.properties import Property, make_properties
from dace.sdfg.nodes import LibraryNode

from dfcompile.errors import UserError
from dfcompile.frontend.element_kind import CODED_REALS, PACKED_BITS, element_kind
from dfcompile.frontend.sdfg.identifiers import ONNX, AttributeValue, attributes_text


@make_properties
class OperatorNode(LibraryNode):  # type: ignore[misc]  # dace has no type information
    """A library node of dialect ``onnx`` (level 0) or ``canonical`` (level 1).

    dfcompile's lowering expands it; DaCe's own expansion mechanism has no implementation of it, so that nothing
    can be expanded behind the user's back.
    """

    dialect = Property(dtype=str, default=ONNX, desc="onnx or canonical")
    op_type = Property(dtype=str, default="", desc="operator type, such as Conv")
    origin = Property(dtype=str, default="", desc="name of the user's operator")
    attributes_json = Property(dtype=str, default="{}", desc="attributes as a JSON object")

    implementations: ClassVar[dict[str, object]] = {}
    default_implementation = None

    def __init__(
        self,
        name: str = "",
        *,
        attributes: Mapping[str, AttributeValue] | None = None,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **words: str,
    ) -> None:
        """Make a node; ``words`` are ``dialect``, ``op_type`` and ``origin``."""
        super().__init__(name, inputs=dict.fromkeys(inputs), outputs=dict.fromkeys(outputs))
        for word, value in {**words, "attributes_json": attributes_text(attributes or {})}.items():
            setattr(self, word, value)

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """The attributes as Python values.

        Raises:
            UserError: they are no object of JSON, as in a program that was not saved by dfcompile.
        """
        try:
            found = json.loads(self.attributes_json)
        except ValueError as error:
            raise UserError(f"node {self.name!r}: attributes {self.attributes_json!r} against JSON: {error}") from error
        if not isinstance(found, dict):
            raise UserError(f"node {self.name!r}: attributes {self.attributes_json!r} against an object of JSON")
        return found


@cache
def scalar_type(dtype: str) -> dace.typeclass:
    """Return DaCe's element type of a numpy name.

    DaCe knows no integers of less than a byte, and few real numbers of a byte: to it such an array is one of bytes,
    and only the type that it stands for says what they are.
    """
    if dtype not in PACKED_BITS and dtype not in CODED_REALS:
        return dace.dtypes.dtype_to_typeclass(np.dtype(dtype).type)
    held = copy(dace.int8 if element_kind(dtype) == "i" else dace.uint8)
    held.typename = held.to_string()
    held.type, held.dtype = np.dtype(dtype).type, held  # not of what it is a copy of
    if dtype in CODED_REALS:
        held.ctype = held.ctype_unaligned = f"dace::{dtype}"  # which the code that is run defines
    return held
