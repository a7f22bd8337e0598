"""Canonical DAGs of single operators, made in the way that models take: lowering, then extraction."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Never

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.verifier import LARGEST_VOLUME
from dfcompile.errors import UserError
from dfcompile.frontend import CANONICAL, ONNX, AttributeValue, Level, Port, Program
from dfcompile.options import Choice, Volumes
from dfcompile.records import replace

Shape = tuple[int, ...]
_NONE: Mapping[str, Never] = MappingProxyType({})


def matmul(n: int, k: int, m: int, expansion: str = "mv", volumes: str = Volumes.EXACT) -> CanonicalDag:
    """Return the tasks of ``A[n, k] @ B[k, m] -> C[n, m]`` [dematteis23, section 3].

    Args:
        n: rows of A.
        k: columns of A.
        m: columns of B.
        expansion: of MatMul, see `dfcompile expansions`.
        volumes: of edges between tasks: own shares or whole arrays.

    Raises:
        UserError: a dimension below 1, an array that is too large, or no expansion of that name.
    """
    _check_arrays("matmul", {"A": (n, k), "B": (k, m), "C": (n, m)})
    return _expanded(f"matmul_{n}_{k}_{m}", "MatMul", {"A": (n, k), "B": (k, m)}, (n, m), (expansion, volumes))


def convolution(
    size: int,
    kernel: int,
    filters: int,
    channels: int = 1,
    stride: int = 1,
    padding: int = 0,
    expansion: str = "mv",
    volumes: str = Volumes.EXACT,
) -> CanonicalDag:
    """Return the tasks of a convolution with bias of a square image, by im2col and a matrix product.

    Args:
        size: rows and columns of the image.
        kernel: rows and columns of a filter.
        filters: number of filters.
        channels: of image and filters.
        stride: between windows.
        padding: rows and columns around the image.
        expansion: of MatMul, see `dfcompile expansions`.
        volumes: of edges between tasks: own shares or whole arrays.

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
    name, attributes = f"convolution_{size}_{kernel}_{filters}", {"strides": [stride] * 2, "pads": [padding] * 4}
    return _expanded(name, "Conv", inputs, output, (expansion, volumes), parameters, attributes)


def _check_arrays(generator: str, shapes: Mapping[str, Shape]) -> None:
    """Check that an edge can carry each array: its elements cost nothing, only tasks do, which extraction counts."""
    for name, shape in shapes.items():
        for size in shape:
            if size < 1:
                raise UserError(f"{generator}: a size of {size} in {name}{list(shape)} against 1 or more")
        elements = math.prod(shape)
        if elements > LARGEST_VOLUME:
            raise UserError(f"{generator}: {name}{list(shape)} of {elements} elements against at most {LARGEST_VOLUME}")


def _expanded(
    name: str,
    op_type: str,
    inputs: Mapping[str, Shape],
    output: Shape,
    options: tuple[str, str],
    parameters: Mapping[str, Shape] = _NONE,
    attributes: Mapping[str, AttributeValue] = _NONE,
) -> CanonicalDag:
    """Return the DAG of an ONNX operator, for an expansion of MatMul and volumes of edges; parameters are zeros."""
    from dfcompile.canonical_dag.extraction.extract import ExtractionOptions, extract_graph
    from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions

    expansion, volumes = options
    table = registered_expansions()
    choices = (Choice("MatMul", expansion),)
    table.check(choices[0])
    operands, result = {**inputs, **parameters}, ("result", output)
    program = program_of_operator(op_type, attributes, Level.ONNX, operands, result, name=op_type.lower())
    zeros = {array: np.broadcast_to(np.float32(0), shape) for array, shape in parameters.items()}
    ports = tuple(port for port in program.inputs if port.array not in zeros)
    program.sdfg.name = name
    program = replace(program, name=name, inputs=ports, parameters=MappingProxyType(zeros))
    nests = lower_to_nests(lower_to_canonical(program, table, choices), table, choices)
    return extract_graph(nests.graph, ExtractionOptions(Volumes(volumes)), parameters=tuple(nests.parameters))


def program_of_operator(
    op_type: str,
    attributes: Mapping[str, AttributeValue],
    level: Level,
    operands: Mapping[str, Shape],
    result: tuple[str, Shape],
    dtype: str = "float32",
    name: str = "op",
) -> Program:
    """Return a program that is one operator.

    Args:
        op_type: of ONNX on level 0, canonical on level 1.
        attributes: of the operator.
        level: of the program.
        operands: shape of each by name, in order.
        result: name and shape.
        dtype: numpy name, of all arrays.
        name: of the operator and of the program.
    """
    # Needs DaCe, which takes long, and the arguments of generators are listed without it.
    from dfcompile.frontend.sdfg.operator_graph import Operator, OperatorGraph

    graph = OperatorGraph(op_type)
    ports = [Port(array, array, shape, dtype) for array, shape in (*operands.items(), result)]
    for port in ports:
        graph.array(port.array, port.shape, dtype, is_transient=False)
    dialect = ONNX if level is Level.ONNX else CANONICAL
    graph.add(Operator(name, op_type, name, tuple(operands), (result[0],), attributes, dialect))
    return Program(name, level, graph.sdfg, tuple(ports[:-1]), tuple(ports[-1:]), MappingProxyType({}), ())
