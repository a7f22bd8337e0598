"""Small inputs of every kind that a command reads, in one folder."""

import io
import json
import py_compile
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
from onnx import external_data_helper

from dfcompile.dfmodel_backend.design_file.message import bytes_of, parse_message
from dfcompile.dfmodel_backend.machine import systems
from dfcompile.generators.catalogue import find_generator
from dfcompile.language_models import times
from dfcompile.language_models.configuration import shipped
from tests.fuzz.command_line import ran
from tests.fuzz.system_cases import small_model

SETUP = Path(__file__).parents[1] / "data" / "dfmodel" / "fft_a100_1024.txt"
CODE = """\
from pathlib import Path

import dace
import numpy as np

from helper import WIDTH

SCALE = float(np.load(Path(__file__).with_name("n.npy"))[0])


@dace.program
def scaled(x: dace.float32[WIDTH], y: dace.float32[WIDTH]):
    y[:] = x * SCALE
"""
DEVICE = {
    "cores": "132", "frequency [GHz]": "1.8", "peak.bf16 [TFLOP/s]": "989", "memory.bandwidth [GB/s]": "3350",
    "memory.capacity [GB]": "80",
}  # fmt: skip
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def write_inputs(folder: Path) -> None:
    """Write all of them, and the folders that they are in; one module is compiled, as an earlier run leaves it."""
    for name, content in _inputs().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    py_compile.compile(str(folder / "p" / "helper.py"))


@cache
def _inputs() -> Mapping[str, bytes]:
    chain = find_generator("chain")
    arguments = {"size": 3, "volume": 4}
    config = resources.files(shipped).joinpath("qwen3-30b-a3b.json").read_bytes()
    calibration = json.loads(resources.files(times).joinpath("calibration.json").read_bytes())["h100"]
    setup = SETUP.read_text(encoding="utf-8")
    numbers = io.BytesIO()
    np.save(numbers, np.ones(4, np.float32))
    model, weights = _with_external_data()
    texts = {
        "s.yaml": resources.files(systems).joinpath("canonical.yaml").read_text(encoding="utf-8"),
        "p/code.py": CODE,
        "p/helper.py": "WIDTH = 4\n",
        "h.txt": " ".join(["1"] * 128),
        "e.json": json.dumps(calibration),
        "t/t.txt": setup,
        **_devices(),
        **_reports(),
    }
    written = {f"g.{form}": chain.write(arguments, name) for form, name in _FORMS.items()}
    return {
        **{name: text.encode() for name, text in texts.items()},
        **{name: text if isinstance(text, bytes) else text.encode() for name, text in written.items()},
        "m/m.onnx": model,
        "m/data/w.bin": weights,
        "p/n.npy": numbers.getvalue(),
        "l/config.json": config,
        "d.xlsx": _workbook(),
        "t/t.pb": bytes_of(parse_message(setup, "t")),
        "c.cache": b"",
    }


_FORMS = {"dag": "text", "json": "json"}


def _with_external_data() -> tuple[bytes, bytes]:
    model = onnx.load_model_from_string(small_model())
    external_data_helper.convert_model_to_external_data(model, location="data/w.bin", size_threshold=0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "data").mkdir()
        onnx.save(model, Path(folder, "m.onnx"))
        return Path(folder, "m.onnx").read_bytes(), Path(folder, "data", "w.bin").read_bytes()


def _reports() -> Mapping[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "small.onnx")
        model.write_bytes(small_model())
        words = [str(model), "--expand", "published", "--format", "json"]
        return {f"{name}.json": ran([*words, "--pes", pes]).out for name, pes in (("a", "2"), ("b", "4"))}


def _devices() -> Mapping[str, str]:
    rows = [("name", "one"), *DEVICE.items()]
    return {
        "d.csv": "".join(f"{key},{value}\n" for key, value in rows),
        "d.tsv": "".join(f"{key}\t{value}\n" for key, value in rows),
        "d.json": json.dumps({"one": DEVICE}),
        "d.toml": "[one]\n" + "".join(f'"{key}" = {value}\n' for key, value in DEVICE.items()),
    }


def _workbook() -> bytes:
    rows = "".join(
        f'<row><c r="A{at}" t="str"><v>{key}</v></c><c r="B{at}" t="str"><v>{value}</v></c></row>'
        for at, (key, value) in enumerate([("name", "one"), *DEVICE.items()], 1)
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        book.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return file.getvalue()
