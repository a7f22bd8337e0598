"""Models that onnxruntime's quantiser made, static in both of its forms and dynamic, against onnxruntime."""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Coverage, Model, read_model, reference_answer
from dfcompile.lowering import lower_to_canonical, lower_to_nests
from dfcompile.lowering.execution.verification import is_quantised, verified_deviation
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, checked_maps, random
from tests.onnx_text import model_from_text

SMALL_NET = """g (float[1,3,12,12] x) => (float[1,6] y) {
    a = Conv<pads=[1,1,1,1]>(x, wa, ba)
    b = Relu(a)
    c = Conv<pads=[1,1,1,1], group=8>(b, wc, bc)
    d = Sigmoid(c)
    e = Add(b, d)
    f = MaxPool<kernel_shape=[2,2], strides=[2,2]>(e)
    g = AveragePool<kernel_shape=[2,2], pads=[0,0,1,1]>(f)
    h = LeakyRelu<alpha=0.1>(g)
    i = Concat<axis=1>(f, h)
    j = GlobalAveragePool(i)
    k = Flatten(j)
    l = Gemm<transB=1>(k, wl, bl)
    y = Softmax(l)
}"""
NET_WEIGHTS = {"wa": (8, 3, 3, 3), "ba": (8,), "wc": (8, 1, 3, 3), "bc": (8,), "wl": (6, 16), "bl": (6,)}

LAYER = """g (float[2,5,8] x) => (float[2,5,8] y) {
    q = MatMul(x, wq)
    k = MatMul(x, wk)
    v = MatMul(x, wv)
    t = Transpose<perm=[0,2,1]>(k)
    s = MatMul(q, t)
    p = Softmax(s)
    o = MatMul(p, v)
    r = Add(x, o)
    n = LayerNormalization(r, gain, shift)
    f = MatMul(n, wf)
    h = Relu(f)
    m = Mul(h, h)
    e = MatMul(m, we)
    y = Add(n, e)
}"""
LAYER_WEIGHTS = {
    "wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "gain": (8,), "shift": (8,), "wf": (8, 16), "we": (16, 8),
}  # fmt: skip
MODELS = {"net": (SMALL_NET, NET_WEIGHTS, (1, 3, 12, 12)), "layer": (LAYER, LAYER_WEIGHTS, (2, 5, 8))}


class Samples(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no type information
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.left: Iterator[dict[str, np.ndarray]] = iter([{"x": random(shape, seed=seed)} for seed in range(3)])

    def get_next(self) -> "dict[str, np.ndarray] | None":
        return next(self.left, None)


def quantised(folder: Path, name: str, form: str) -> Model:
    text, shapes, shape = MODELS[name]
    weights = {key: random(extents, seed=seed) / 3 for seed, (key, extents) in enumerate(shapes.items())}
    model = model_from_text(text, **weights)
    del model.opset_import[:]
    model.opset_import.append(onnx.helper.make_opsetid("", 17))
    onnx.save(model, folder / "model.onnx")
    target = folder / f"{name}_{form}.onnx"
    logging.disable(logging.WARNING)
    try:
        if form.startswith("dynamic"):
            kind = QuantType.QUInt8 if form.endswith("unsigned") else QuantType.QInt8
            quantize_dynamic(folder / "model.onnx", target, weight_type=kind)
        else:
            quantize_static(
                folder / "model.onnx", target, Samples(shape),
                quant_format=QuantFormat.QDQ if form.startswith("pairs") else QuantFormat.QOperator,
                activation_type=QuantType.QInt8 if form.endswith("signed") else QuantType.QUInt8,
                per_channel=form == "pairs_signed",
            )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    return read_model(target)


@pytest.mark.filterwarnings("ignore")  # of the quantiser
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "form", ["pairs", "pairs_signed", "operators", "operators_signed", "dynamic", "dynamic_unsigned"]
)
def test_quantised_model_is_costed_and_computes_what_onnxruntime_does(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dfcompile.lowering.execution.verification.run_program", interpret)
    model = quantised(tmp_path, name, form)
    maps = checked_maps(lower_to_nests(lower_to_canonical(model.program, TABLE), TABLE))

    assert is_quantised(maps)
    assert verified_deviation(model, maps, seed=7).relative < 1e-2
    (answer,) = reference_answer(model, model.example_feeds(seed=7)).outputs
    assert float(np.ptp(answer.astype(np.float64))) > 0  # of zeros alone, nothing would be seen
    dag = extract(maps.sdfg, parameters=maps.parameters)
    assert {node.coverage for node in model.program.nodes} <= {Coverage.COSTED, Coverage.VIEW, Coverage.FOLDED}
    weights = {tensor.name: tensor.element_bytes for tensor in dag.tensors if tensor.role == "parameter"}
    matrices = [name for name in weights if model.program.parameters.get(name, np.empty(0)).size > 20]
    assert matrices
    assert {weights[name] for name in matrices} == {1}
