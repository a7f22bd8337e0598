"""Front ends of others: what their readers raise or return is theirs, and the checker tells what is wrong."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from dfcompile.errors import PluginError, UserError
from dfcompile.frontend import FileKind, Model, ReadOptions
from dfcompile.frontend.file_kinds.onnx_file import ONNX_FILE
from dfcompile.frontend.model import Answer, Array
from dfcompile.records import replace
from dfcompile.testing import check_front_end

ModelWriter = Callable[[str], Path]
Read = Callable[[Path, ReadOptions], Model]
LINEAR = "g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {0,1,2,3,4,5,6,7,8,9,10,11}> { [m] y = MatMul(x, w) }"


def foreign(read: Read) -> FileKind:
    """A reader as a package of a third party has it."""

    def read_it(path: Path, options: ReadOptions) -> Model:
        return read(path, options)

    read_it.__module__ = "mylab.files"
    read_it.__name__ = "read_it"
    return FileKind(".onnx", read_it)


def test_our_own_front_end_keeps_the_laws(write_model: ModelWriter) -> None:
    dag = check_front_end(ONNX_FILE, write_model(LINEAR))

    assert [kernel.origin for kernel in dag.kernels] == ["m"]


def test_what_a_reader_raises_or_returns_is_its_own_fault(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"

    def key_error(_path: Path, _options: ReadOptions) -> Model:
        raise KeyError("layers")

    def nothing(_path: Path, _options: ReadOptions) -> Model:
        return None  # type: ignore[return-value]

    def missing(_path: Path, _options: ReadOptions) -> Model:
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(PluginError, match=r"in front end mylab\.files\.read_it: KeyError: 'layers'"):
        foreign(key_error).model(path, ReadOptions())
    with pytest.raises(
        PluginError, match=r"in front end mylab\.files\.read_it: .*onnx: found NoneType against a Model"
    ):
        foreign(nothing).model(path, ReadOptions())
    with pytest.raises(UserError, match=r"m\.onnx: No such file or directory"):
        foreign(missing).model(path, ReadOptions())


@pytest.mark.parametrize("suffix", ["onnx", ".ONNX", ""])
def test_suffixes_have_a_dot_and_small_letters(suffix: str) -> None:
    with pytest.raises(ValueError, match="kind of model file"):
        FileKind(suffix, ONNX_FILE.read)


def changing(numbers: Iterator[int]) -> Read:
    """A reader whose weights are others each time."""

    def read(path: Path, options: ReadOptions) -> Model:
        model = ONNX_FILE.read(path, options)
        (name,) = model.program.parameters
        value = np.full((3, 4), next(numbers), np.float32)
        return replace(model, program=replace(model.program, parameters={name: value}))

    return read


def wrong_reference(path: Path, options: ReadOptions) -> Model:
    model = ONNX_FILE.read(path, options)

    def zeros(inputs: Sequence[Array]) -> Answer:
        return Answer((np.zeros((2, 4), np.float32),), "mylab", "ask them")

    return replace(model, reference=zeros)


def careless(path: Path, options: ReadOptions) -> Model:
    if path.stat().st_size < 20:
        raise IndexError(path.stat().st_size)
    return ONNX_FILE.read(path, options)


def silent(path: Path, options: ReadOptions) -> Model:
    if path.stat().st_size < 20:
        raise UserError("no model")
    return ONNX_FILE.read(path, options)


def test_the_checker_tells_what_is_wrong(write_model: ModelWriter) -> None:
    path = write_model(LINEAR)

    with pytest.raises(AssertionError, match="found two values of parameter"):
        check_front_end(foreign(changing(count())), path)
    with pytest.raises(UserError, match="output 'y'"):
        check_front_end(foreign(wrong_reference), path)
    with pytest.raises(AssertionError, match="an empty file: found an error of the reader against one of the file"):
        check_front_end(foreign(careless), path)
    with pytest.raises(AssertionError, match="an empty file: found 'no model' against an error that names the file"):
        check_front_end(foreign(silent), path)
    with pytest.raises(AssertionError, match=r"found '\.onnx' against '\.layers'"):
        check_front_end(replace(foreign(silent), suffix=".layers"), path)
