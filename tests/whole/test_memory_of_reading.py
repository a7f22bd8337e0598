"""Reading a model takes no more memory than is stated."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.locations import ROOT

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]


def value(name: str, shape: Sequence[int] = (2,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def external(folder: Path, location: str, data: bytes, **keys: int) -> onnx.ModelProto:
    """Return ``y = x + w`` with ``w`` of two floats elsewhere."""
    if data:
        (folder / location).write_bytes(data)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **keys}.items():
        tensor.external_data.add(key=key, value=str(text))
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], [tensor])
    return helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10)


# What docs/security.md states: memory of reading beyond what the empty program takes.
PER_FILE_BYTE = 200
PER_TENSOR_BYTE = 4
MEASURE = (
    "import resource, sys; from pathlib import Path; from dfcompile.frontend import ReadOptions, read_model\n"
    "from dfcompile.errors import UserError\n"
    "import onnx.reference, onnx.version_converter\n"
    "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    "try: read_model(Path(sys.argv[1]), ReadOptions())\n"
    "except UserError: pass\n"
    "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)\n"
)


def empty_nodes(path: Path) -> int:
    proto = external(path.parent, "w.bin", bytes(8))
    proto.graph.node.extend([onnx.NodeProto() for _ in range(150_000)])
    onnx.save(proto, path)
    return 8


def weights(path: Path) -> int:
    proto = external(path.parent, "w.bin", b"")
    array = np.ones((4096, 4096), np.float32)
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
    proto.graph.input[0].CopyFrom(value("x", (1, 4096)))
    proto.graph.node[0].op_type = "MatMul"
    proto.graph.output[0].CopyFrom(value("y", (1, 4096)))
    onnx.save(proto, path)
    return array.nbytes


def announced(path: Path) -> int:
    nodes = [helper.make_node("ConstantOfShape", ["s"], [f"t{n}"]) for n in range(400)]
    nodes += [helper.make_node("Sum", ["x", *(f"t{n}" for n in range(400))], ["y"])]
    shape = numpy_helper.from_array(np.array([2**16]), "s")
    graph = helper.make_graph(nodes, "g", [value("x", (2**16,))], [value("y", (2**16,))], [shape])
    onnx.save(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10), path)
    return 400 * 4 * 2**16


@pytest.mark.slow
@pytest.mark.parametrize("write", [empty_nodes, weights, announced])
def test_memory_of_reading_is_bounded(write: Callable[[Path], int], tmp_path: Path) -> None:
    tensor_bytes = write(tmp_path / "model.onnx")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, "model.onnx"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    structure = (tmp_path / "model.onnx").stat().st_size - (tensor_bytes if write is weights else 0)

    assert int(done.stdout) <= PER_FILE_BYTE * structure + PER_TENSOR_BYTE * tensor_bytes + 2**26
