"""Compiled code of real numbers that DaCe has no type for: the same bits as by ONNX's tables, in every form of task."""

import numpy as np

from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_maps
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.lowering.passes.fuse_elementwise import fuse_elementwise
from tests.coded_reals import SIGNED, all_codes, borders, codes_of, every_cast, signed_answer
from tests.onnx_nodes import TABLE, Node, lowered
from tests.onnx_text import model_from_text, program_from_model


def test_every_code_and_every_border() -> None:
    model, feeds, expected = every_cast()
    found = run_program(lowered(model), feeds, optimised=False)

    for name, codes in expected.items():
        value = found[name]
        if name.startswith("from_"):
            np.testing.assert_array_equal(value, np.array(codes, np.uint8).view(np.float32), err_msg=name)
        else:
            assert codes_of(value) == codes, name


def test_joined_tasks_round_as_storing_did() -> None:
    x = np.concatenate([borders(dtype) for dtype in SIGNED])
    numbers = {"float4_e2m1fn": 23, "float8_e4m3fnuz": 18, "float8_e5m2fnuz": 20}
    casts = " ".join(
        f"c{number} = Cast<to = {number}>(x) f{number} = Cast<to = 1>(c{number}) y{number} = Neg(f{number})"
        for number in numbers.values()
    )
    results = ", ".join(f"float[{len(x)}] y{number}" for number in numbers.values())
    model = model_from_text(f"g (float[{len(x)}] x) => ({results}) {{ {casts} }}")
    model.opset_import[0].version = 25
    canonical = apply_passes(lower_to_canonical(program_from_model(model), TABLE), [fuse_elementwise])
    found = run_program(lower_to_maps(canonical, TABLE), {"x": x}, optimised=False)

    for dtype, number in numbers.items():
        rounded = np.array(signed_answer(x, dtype, saturate=True), np.uint8).view(dtype).astype(np.float32)
        np.testing.assert_array_equal(found[f"y{number}"], -rounded)


def test_constants_of_four_bits() -> None:
    steps = all_codes("float4_e2m1fn")[:13]
    program = lowered(Node("DequantizeLinear", [steps, np.array(0.5, np.float32)], [0, 1], opset=25).model())
    (found,) = run_program(program, {}, optimised=False).values()

    assert codes_of(found) == codes_of(steps.astype(np.float32) / 2)
