"""ONNX's own node tests: those of every operator that can be compiled pass, or are refused for a reason listed here.

All are interpreted, and with constants for operands one of each operator; one of each operator in a batch is compiled.
In `make nightly` all are.
"""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import Program
from dfcompile.frontend.onnx.schemas import CONTRIBUTED
from dfcompile.lowering.execution.compiled_run import run_program
from tests.examples import TIMES
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, merged, node_cases, tolerance
from tests.onnx_nodes import TABLE, Node, assert_same, lowered, random

BATCHES = 4  # of equal size
TOGETHER = 50  # cases of one compiled program: DaCe takes a second for any, and the square of their number for many
LEAST = 250  # cases of a batch that pass; others are of data types that no array holds

WITHOUT_CASE = {"GlobalLpPool", "MaxRoiPool"}  # a test of its own is below, or beside the other operators of regions


# By reason: a published case, and what the refusal says.
REFUSED = {
    "an operator set before 7": ("not_2d", r"operator set \d against 7 to"),
    "a data type that no array holds": ("equal_string", r"element type '\w+' against"),
    "training": (
        "batchnorm_example_training_mode",
        r"attribute 'training_mode' is 1 against 0|'training_mode' is true against false",
    ),
    "sizes that two definitions take for different scales": (
        "resize_downsample_scales_linear_align_corners",
        "has scale .* against one that gives a whole number of elements|against the size .* that its windows give",
    ),
}


def lowering(case: NodeCase, reasons: Counter[str]) -> Program | None:
    """Return the case as map scopes, or count the reason why it is refused."""
    try:
        return lowered(case.model)
    except UserError as error:
        refusal = str(error)
    found = [reason for reason, (_, pattern) in REFUSED.items() if re.search(pattern, refusal)]
    assert found, f"{case.name}: refused without a listed reason: {refusal}"
    reasons[found[0]] += 1
    return None


def richest(cases: list[NodeCase]) -> list[NodeCase]:
    """Return the case of each operator that has most attributes and operands; in a long run all cases."""
    if TIMES >= 1:
        return cases
    by_size = sorted(cases, key=lambda case: len(case.node.attribute) + len(case.node.input))
    return list({case.node.op_type: case for case in by_size}.values())


@cache
def batches() -> list[list[NodeCase]]:
    """Return all cases that have inputs, in the order of their operator sets, in parts of about the same size."""
    plain, constant = ([case for case in node_cases(constants=constants) if case.feeds] for constants in (False, True))
    cases = [*plain, *richest(constant)]
    cases.sort(key=lambda case: case.opset)
    return [cases[len(cases) * at // BATCHES : len(cases) * (at + 1) // BATCHES] for at in range(BATCHES)]


def parts(cases: list[NodeCase]) -> list[list[NodeCase]]:
    """Return the cases in as few parts as possible, all about as large."""
    number = -(-len(cases) // TOGETHER)
    return [cases[at::number] for at in range(number)]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(BATCHES))
def test_cases_pass_interpreted_and_compiled_or_are_refused_for_a_listed_reason(number: int) -> None:
    every = batches()
    reasons: Counter[str] = Counter()
    passed: dict[int, list[NodeCase]] = {}
    for case in every[number]:
        program = lowering(case, reasons)
        if program is not None:
            found = interpret(program, case.feeds)
            assert_same(found, case.expected, tolerance(case), tolerance(case) * 1e-2)
            passed.setdefault(case.opset, []).append(case)
    for together in (some for cases in passed.values() for some in parts(richest(cases))):
        model, feeds, expected = merged(together)
        compiled = run_program(lowered(model), feeds, optimised=False)
        assert list(compiled) == list(expected)
        for number_of_case, case in enumerate(together):
            prefix = f"v{number_of_case}_"
            one = {name: value for name, value in compiled.items() if name.startswith(prefix)}
            assert_same(one, {name: expected[name] for name in one}, tolerance(case), tolerance(case) * 1e-2)

    assert sum(map(len, passed.values())) > LEAST


@pytest.mark.slow
def test_every_claimed_operator_has_a_case_and_every_refusal_is_met() -> None:
    cases = {case.name: case for case in node_cases(constants=False)}
    reasons: Counter[str] = Counter()
    for example in REFUSED.values():
        assert lowering(cases[example[0]], reasons) is None

    assert set(reasons) == set(REFUSED)
    own = ("dace.", "linalg.")  # of numerical programs: no ONNX file has them
    published = {name for name in TABLE.op_types("onnx") if name not in CONTRIBUTED and not name.startswith(own)}
    assert published - {case.node.op_type for case in cases.values()} == WITHOUT_CASE


@pytest.mark.slow
def test_operator_without_published_case_passes_compiled() -> None:
    x = random((2, 3, 4, 5))
    node = Node("GlobalLpPool", [x], attributes={"p": 3})
    expected = {"y0": (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** np.float32(1 / 3)}
    program = lowered(node.model())

    assert_same(interpret(program, node.feeds), expected, 1e-5, 1e-5)
    assert_same(run_program(program, node.feeds, optimised=False), expected, 1e-5, 1e-5)
