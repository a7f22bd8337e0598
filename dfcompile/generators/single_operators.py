"""Canonical DAGs of single operators, made in the way that models take: lowering, then extraction."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import dace
import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError
from dfcompile.frontend import AttributeValue, Level, OperatorNode, Port, Program, input_connector, output_connector
from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions
from dfcompile.options import Choice, Volumes

Shape = tuple[int, ...]


def matmul(n: int, k: int, m: int, expansion: str = "mv", volumes: str = "exact") -> CanonicalDag:
    """Return the tasks of ``A[n, k] @ B[k, m] -> C[n, m]`` [dematteis23, section 3].

    Args:
        n: rows of A and C.
        k: columns of A, rows of B.
        m: columns of B and C.
        expansion: of MatMul.
        volumes: of edges between tasks, ``exact`` or ``array``.

    Raises:
        UserError: a dimension below 1, an array that is too large, or no expansion of that name.
    """
    _check_arrays("matmul", {"A": (n, k), "B": (k, m), "C": (n, m)})
    operator = _Operator("MatMul", {"A": (n, k), "B": (k, m)}, (n, m))
    return _expanded(f"matmul_{n}_{k}_{m}", operator, expansion, volumes)


def convolution(
    size: int,
    kernel: int,
    filters: int,
    channels: int = 1,
    stride: int = 1,
    padding: int = 0,
    expansion: str = "mv",
    volumes: str = "exact",
) -> CanonicalDag:
    """Return the tasks of a convolution with bias of a square image, by im2col and a matrix product.

    Args:
        size: rows and columns of the image.
        kernel: rows and columns of a filter.
        filters: number of filters.
        channels: of image and filters.
        stride: between windows.
        padding: rows and columns of zeros around the image.
        expansion: of MatMul.
        volumes: of edges between tasks, ``exact`` or ``array``.

    Raises:
        UserError: a size below 1, a filter larger than the image, an array that is too large, or no expansion of that
            name.
    """
    if padding < 0:
        raise UserError(f"convolution: padding {padding} against 0 or more")
    if stride < 1:
        raise UserError(f"convolution: stride {stride} against 1 or more")
    image = size + 2 * padding
    if kernel > image:
        raise UserError(f"convolution: kernel {kernel} against at most {image}, the size of the image with its padding")
    side = (image - kernel) // stride + 1
    inputs = {"X": (1, channels, size, size)}
    parameters = {"W": (filters, channels, kernel, kernel), "bias": (filters,)}
    output = (1, filters, side, side)
    columns = (channels * kernel * kernel, side * side)
    padded = (1, channels, image, image)
    _check_arrays("convolution", {**inputs, **parameters, "Y": output, "columns": columns, "padded image": padded})
    operator = _Operator("Conv", inputs, output, parameters, {"strides": [stride] * 2, "pads": [padding] * 4})
    return _expanded(f"convolution_{size}_{kernel}_{filters}", operator, expansion, volumes)


def _check_arrays(generator: str, shapes: Mapping[str, Shape]) -> None:
    """Check that an edge can carry each array: its elements cost nothing, only tasks do, which extraction counts."""
    for name, shape in shapes.items():
        for size in shape:
            if size < 1:
                raise UserError(f"{generator}: a size of {size} in {name}{list(shape)} against 1 or more")
        elements = math.prod(shape)
        if elements > LARGEST_VOLUME:
            raise UserError(f"{generator}: {name}{list(shape)} of {elements} elements against at most {LARGEST_VOLUME}")


class _Operator(Struct, frozen=True):
    """An ONNX operator: shapes of its inputs, its result and its parameters by name, and its attributes."""

    op_type: str
    inputs: Mapping[str, Shape]
    output: Shape
    parameters: Mapping[str, Shape] = {}
    attributes: Mapping[str, AttributeValue] = {}


def _expanded(name: str, operator: _Operator, expansion: str, volumes: str) -> CanonicalDag:
    table = registered_expansions()
    choices = (Choice("MatMul", expansion),)
    table.check(choices[0])
    nests = lower_to_nests(lower_to_canonical(_program(name, operator), table, choices), table, choices)
    return extract_graph(nests.graph, ExtractionOptions(Volumes(volumes)), parameters=tuple(nests.parameters))


def _program(name: str, operator: _Operator) -> Program:
    """Return a program of one operator, as the frontend gives it; the parameters are zeros."""
    sdfg = dace.SDFG(name)
    state = sdfg.add_state("main", is_start_block=True)
    operands = {**operator.inputs, **operator.parameters}
    arrays = {**operands, "result": operator.output}
    for array, shape in arrays.items():
        sdfg.add_array(array, list(shape), dace.float32)
    connectors = {array: input_connector(place) for place, array in enumerate(operands)}
    origin = operator.op_type.lower()
    node = OperatorNode(
        origin, op_type=operator.op_type, origin=origin, attributes=operator.attributes,
        inputs=list(connectors.values()), outputs=[output_connector(0)],
    )  # fmt: skip
    state.add_node(node)
    whole = {array: dace.Memlet.from_array(array, sdfg.arrays[array]) for array in arrays}
    for array, connector in connectors.items():
        state.add_edge(state.add_access(array), None, node, connector, whole[array])
    state.add_edge(node, output_connector(0), state.add_access("result"), None, whole["result"])
    zeros = {array: np.broadcast_to(np.float32(0), shape) for array, shape in operator.parameters.items()}
    return Program(
        name=name,
        level=Level.ONNX,
        sdfg=sdfg,
        inputs=tuple(Port(array, array, shape, "float32") for array, shape in operator.inputs.items()),
        outputs=(Port("result", "result", operator.output, "float32"),),
        parameters=MappingProxyType(zeros),
        nodes=(),
    )
