"""The draft: an ONNX graph and, apart from it, its constants; what the normaliser's passes turn into another one."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from msgspec import Struct

Constant: TypeAlias = npt.NDArray[np.generic]
Constants: TypeAlias = Mapping[str, Constant]  # by name


def read_only(value: Constant) -> Constant:
    """Return an array that can no longer be written to."""
    value.flags.writeable = False
    return value


class Draft(Struct, frozen=True):
    """A model between reading and importing.

    The constants stand apart because copying and inferring shapes over megabytes of weights is most of the time that
    ONNX tools take.

    Attributes:
        proto: the model; its graph has no initializers and no inner value infos. Never mutated: a pass makes a copy.
        constants: values of the initializers by name, read-only.
    """

    proto: onnx.ModelProto
    constants: Constants

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the model's inputs."""
        return tuple(value.name for value in self.proto.graph.input)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        return tuple(value.name for value in self.proto.graph.output)

    def replaced(
        self,
        nodes: Iterable[onnx.NodeProto],
        constants: Constants | None = None,
    ) -> "Draft":
        """Return the draft with other nodes, and other constants if given."""
        # The list is built first: the nodes may come out of this very graph.
        kept = list(nodes)
        proto = self.shell()
        proto.graph.node.extend(kept)
        return Draft(proto, self.constants if constants is None else constants)

    def shell(self) -> onnx.ModelProto:
        """Return a copy of the model with inputs and outputs, but no nodes."""
        proto = onnx.ModelProto(ir_version=self.proto.ir_version)
        proto.opset_import.extend(self.proto.opset_import)
        proto.graph.name = self.proto.graph.name
        proto.graph.input.extend(self.proto.graph.input)
        proto.graph.output.extend(self.proto.graph.output)
        return proto
