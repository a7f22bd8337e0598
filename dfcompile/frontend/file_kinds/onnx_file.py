"""ONNX files: data, never run."""

from collections.abc import Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.model import Answer, Array, FileKind, Model, ReadOptions
from dfcompile.frontend.normaliser.opset import at_common_opset
from dfcompile.frontend.onnx import onnxruntime_evaluation
from dfcompile.frontend.onnx.draft import Constants
from dfcompile.frontend.onnx.draft_reading import NO_WEIGHTS, input_names
from dfcompile.frontend.onnx.external_data import mapped_data, with_data
from dfcompile.frontend.onnx.reference_evaluation import evaluate
from dfcompile.frontend.onnx_model import program_of
from dfcompile.host.printable import one_line

_HINT = "that implementation is wrong for some operators: install dfcompile[oracle] for onnxruntime, and try again"


class OnnxReference(Struct, frozen=True):
    """Runs a model by onnxruntime where that is installed and takes the model, else by ONNX's own implementation.

    Of old operator sets the latter knows the names but not always the meaning: it normalises a Softmax of version 11
    along one axis, and has BatchNormalization of version 9 train. So an old model is converted first.
    """

    proto: onnx.ModelProto
    weights: Constants = NO_WEIGHTS  # its external data

    def __call__(self, inputs: Sequence[Array]) -> Answer:
        """Return the outputs in the model's order."""
        whole = with_data(self.proto, self.weights)
        feeds = dict(zip(input_names(whole), inputs, strict=True))
        if onnxruntime_evaluation.is_installed():
            found = onnxruntime_evaluation.evaluated(whole, feeds)
            if found is not None:
                return Answer(found[1], found[0], "please report it")
        failure = "model: onnx's reference implementation cannot run it"
        outputs = evaluate(at_common_opset(whole), feeds, failure)
        return Answer(outputs, "onnx's reference implementation", _HINT)


def read_onnx(path: Path, options: ReadOptions) -> Model:
    """Return the model in an ONNX file, with external data if it has any.

    Raises:
        UserError: the file is empty, cut off or no ONNX model, its data is missing, or it cannot be compiled.
    """
    proto = _parsed(path)
    try:
        weights = mapped_data(proto, path.parent)
    except UserError as error:
        raise UserError(f"{path}: its external data cannot be read: {error}") from error
    return Model(program_of(path.stem, proto, options, weights), OnnxReference(proto, weights))


def _parsed(path: Path) -> onnx.ModelProto:
    if path.stat().st_size == 0:
        raise UserError(f"{path}: an empty file against an ONNX model")
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except DecodeError as error:
        raise UserError(f"{path}: not an ONNX model, or a truncated one: {one_line(error)}") from error
    if not proto.HasField("graph"):
        raise UserError(f"{path}: not an ONNX model: it has no graph")
    return proto


def onnx_model(name: str, proto: onnx.ModelProto, options: ReadOptions) -> Model:
    """Return an ONNX model in memory as a model: what a reader of another kind of file can end with.

    Args:
        name: of the model, as far as it is an identifier.
        proto: with all its data; not changed.
        options: shapes of the inputs.

    Raises:
        UserError: the model contradicts itself, or has something that cannot be compiled.
    """
    return Model(program_of(name, proto, options), OnnxReference(proto))


ONNX_FILE = FileKind(".onnx", read_onnx)
