"""Real numbers that DaCe has no type for: all their codes, the borders between them, and what ONNX's tables say."""

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper

from dfcompile.frontend.onnx.element_type import onnx_type
from tests.onnx_nodes import Array

SIGNED = ("float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz")
POWERS = "float8_e8m0fnu"
ROUND_MODES = ("up", "nearest", "down")
_NO_NUMBER = 255

Single = npt.NDArray[np.float32]


def all_codes(dtype: str) -> Array:
    """Return each number of a type, in the order of the codes."""
    return np.arange(16 if dtype.startswith("float4") else 256).astype(np.uint8).view(dtype)


def codes_of(values: Array) -> list[int]:
    found: list[int] = np.ravel(values.view(np.uint8)).tolist()
    return found


def borders(dtype: str) -> Single:
    """Return each number, what is half-way between two, the neighbours of both, and what no code stands for."""
    numbers = all_codes(dtype).astype(np.float64)
    numbers = np.unique(np.abs(numbers[np.isfinite(numbers)]))
    beyond = [numbers[-1] + (numbers[-1] - numbers[-2]) / 2, numbers[-1] * 1.99]
    exact = np.concatenate([numbers, (numbers[:-1] + numbers[1:]) / 2, beyond, [1e-44]]).astype(np.float32)
    sides = [np.nextafter(exact, np.float32(side), dtype=np.float32) for side in (0, 3e38)]
    positive = np.concatenate([exact, *sides, [np.inf, np.nan, 3e38]])
    return np.concatenate([positive, -positive]).astype(np.float32)


def signed_answer(x: Single, dtype: str, *, saturate: bool) -> list[int]:
    """Return the codes by ONNX's table of Cast to 8 bits; those of four bits saturate in any case."""
    largest = np.nanmax(all_codes(dtype).astype(np.float32))
    with np.errstate(all="ignore"):
        return codes_of((np.clip(x, -largest, largest) if saturate else x).astype(dtype))


def power_answer(x: Single, mode: str, *, saturate: bool) -> list[int]:
    """Return the codes of powers of two by ONNX's table, which onnxruntime extends to negative numbers."""
    found = []
    for value in x.astype(np.float64).tolist():
        if np.isnan(value) or (not saturate and not 2.0**-127 <= value <= 2.0**127):
            found.append(_NO_NUMBER)
            continue
        held = min(max(value, 2.0**-127), 2.0**127)
        below = next(power for power in range(127, -128, -1) if 2.0**power <= held)
        rises = {"up": held > 2.0**below, "nearest": held >= 1.5 * 2.0**below, "down": False}[mode]
        found.append(below + rises + 127)
    return found


def every_cast() -> tuple[ModelProto, dict[str, Array], dict[str, list[int]]]:
    """Return a model of casts of all borders and codes, its inputs, and the codes of its results."""
    inputs, outputs, nodes = [], [], []
    feeds: dict[str, Array] = {}
    expected: dict[str, list[int]] = {}
    for dtype in (*SIGNED, POWERS):
        number, x, codes = onnx_type(dtype), borders(dtype), all_codes(dtype)
        feeds |= {f"x_{dtype}": x, f"c_{dtype}": codes}
        inputs += [
            helper.make_tensor_value_info(f"x_{dtype}", TensorProto.FLOAT, x.shape),
            helper.make_tensor_value_info(f"c_{dtype}", number, codes.shape),
        ]
        for saturate in (False, True):
            for mode in ROUND_MODES if dtype == POWERS else ("up",):
                name = f"to_{dtype}_{saturate}_{mode}"
                nodes.append(
                    helper.make_node("Cast", [f"x_{dtype}"], [name], to=number, saturate=int(saturate), round_mode=mode)
                )
                outputs.append(helper.make_tensor_value_info(name, number, x.shape))
                expected[name] = (
                    power_answer(x, mode, saturate=saturate)
                    if dtype == POWERS
                    else signed_answer(x, dtype, saturate=saturate)
                )
        single, moved = f"from_{dtype}", f"moved_{dtype}"
        nodes += [
            helper.make_node("Cast", [f"c_{dtype}"], [single], to=TensorProto.FLOAT),
            helper.make_node("Reshape", [f"c_{dtype}", "rows"], [f"rows_{dtype}"]),
            helper.make_node("Transpose", [f"rows_{dtype}"], [moved]),
        ]
        outputs += [
            helper.make_tensor_value_info(single, TensorProto.FLOAT, codes.shape),
            helper.make_tensor_value_info(moved, number, (len(codes) // 4, 4)),
        ]
        expected[single] = codes_of(codes.astype(np.float32))
        expected[moved] = codes_of(np.ascontiguousarray(codes.reshape(4, -1).T))
    rows = helper.make_tensor("rows", TensorProto.INT64, [2], [4, -1])
    graph = helper.make_graph(nodes, "casts", inputs, outputs, [rows])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    return model, feeds, expected
