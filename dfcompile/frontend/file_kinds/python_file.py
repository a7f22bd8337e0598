"""Python files that hold a PyTorch model: code, run with the user's rights."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from dfcompile.frontend.file_kind import FileKind
from dfcompile.frontend.model import Answer, Array, Model
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.options import ReadOptions
from dfcompile.frontend.torch.python_module import PythonModule, running
from dfcompile.frontend.torch.torch_model import (
    TorchModel,
    export_onnx,
    is_module,
    require_torch,
    seed_torch,
    torch_model,
)
from dfcompile.host.stages import stage, work_of

_PARTS = (3, 3, 1)  # PyTorch is imported, the model exported, and read: about, for what is shown of progress


class TorchReference(Struct, frozen=True):
    """Runs a model by PyTorch."""

    model: TorchModel

    def __call__(self, inputs: Sequence[Array]) -> Answer:
        """Return the outputs in the order of the module's result."""
        return Answer(self.model.run(inputs), "PyTorch", "please report it")


def read_python(path: Path, options: ReadOptions) -> Model:
    """Return the PyTorch model that a Python file defines.

    The file has a function ``model()`` and a function ``example_inputs()``, or values of these names: an
    ``nn.Module``, and a tensor or a tuple of tensors. Weights and inputs are those after ``torch.manual_seed(0)``.

    Raises:
        UserError: PyTorch is missing; the file raises, lacks one of the two, or they are of other types; or the model
            cannot be exported.
    """
    with work_of(sum(_PARTS)) as work:
        running_parts, exporting_parts, importing_parts = _PARTS
        with work.part(running_parts):
            require_torch(path)
            seed_torch()
        with running(path) as module:
            found = torch_model(path, _value(module, "model"), _value(module, "example_inputs"))
            with stage("exporting it to ONNX"), work.part(exporting_parts, is_unseen=True):
                exported, weights = export_onnx(found)
        with work.part(importing_parts):
            program = program_of(path.stem, exported, options, weights)
    return Model(program, TorchReference(found), found.examples)


def _value(module: PythonModule, name: str) -> object:
    value = module.value(name)
    return module.call(name) if callable(value) and not is_module(value) else value


PYTHON_FILE = FileKind(".py", read_python)
