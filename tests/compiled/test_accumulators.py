"""What compiled code adds up: in double precision, rounded once, the same on any number of threads."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from dfcompile.canonical_dag import format_dag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.lowering import Choice
from dfcompile.lowering.execution.compiled_run import run_program
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, merged
from tests.onnx_nodes import Array, Node, lowered

NAN, INF = np.nan, np.inf
PRODUCTS = ("mv", "op", "lmv", "ip", "columns", "rows")  # expansions of MatMul
MANY_TERMS = np.random.default_rng(0).random(200_000).astype(np.float32)
NodeAndResult = tuple[Node, object]


def sums() -> dict[str, NodeAndResult]:
    """Return what the type of the data cannot hold on the way."""
    integers: Mapping[str, tuple[Sequence[int], int]] = {
        "ReduceL2": ([65536, 3], 65536),
        "ReduceLogSum": ([2**30] * 4, 22),
        "ReduceLogSumExp": ([5, *[4] * 6], 6),
    }
    large, small = np.full((1, 2), 256, np.float16), np.full((2, 1), 2.0**-10, np.float16)
    a, b = np.full((1, 2), 200, np.float16), np.full((2, 1), 200, np.float16)
    return {
        "5,000 ones": (Node("ReduceSum", [np.ones(5000, np.float16)]), [5000]),
        "mean of 5,000": (Node("ReduceMean", [np.full(5000, 30, np.float16)]), [30]),
        "average": (Node("GlobalAveragePool", [np.full((1, 2, 90, 90), 30, np.float16)]), [[[[30]], [[30]]]]),
        **{op: (Node(op, [np.array(row, np.uint32)]), [expected]) for op, (row, expected) in integers.items()},
        "bias before rounding": (Node("Gemm", [a, b, np.array([-40000], np.float16)]), [[40000]]),
        "einsum of three": (
            Node("Einsum", [large, large.T.copy(), small], attributes={"equation": "ij,jk,lk->il"}),
            [[128, 128]],
        ),
    }


def products() -> dict[str, NodeAndResult]:
    """Return a product for each way to compute one."""
    a = np.array([[300, 300, 1, 1]], np.float16)
    b = np.array([[300], [-300], [1], [1]], np.float16)
    return {f"MatMul {way}": (Node("MatMul", [a, b]), [[2]]) for way in PRODUCTS}


def extrema() -> dict[str, NodeAndResult]:
    """Return exact ones, and those of undefined numbers: one counts if it comes first, as in onnxruntime."""
    rows = [[NAN, 1, 2], [1, NAN, 2], [2, 1, NAN], [-INF, NAN, 3], [NAN] * 3, [-INF] * 3]
    of_undefined = {"ReduceMax": [NAN, 2, 2, 3, NAN, -INF], "ReduceMin": [NAN, 1, 1, -INF, NAN, -INF]}
    found: dict[str, NodeAndResult] = {}
    for op_type, expected in of_undefined.items():
        for dtype in ("float32", "float64"):
            node = Node(op_type, [np.array(rows, dtype), np.array([1])], [1], {"keepdims": 0})
            found[f"{op_type} {dtype}"] = (node, expected)
        for dtype in ("int64", "uint64", "int32"):
            limits = np.iinfo(dtype)
            x = np.array([[limits.max, limits.max - 1], [limits.min, limits.min + 1], [limits.min, limits.max]], dtype)
            exact = x.max(axis=1) if op_type == "ReduceMax" else x.min(axis=1)
            found[f"{op_type} {dtype}"] = (Node(op_type, [x, np.array([1])], [1], {"keepdims": 0}), exact)
    return found


def undefined() -> dict[str, NodeAndResult]:
    a, b = np.array([NAN, 1, 3, NAN], np.float32), np.array([1, NAN, 2, NAN], np.float32)
    x = np.array([[NAN, 1, 2], [1, NAN, 2], [3, 1, NAN]], np.float32)
    return {
        "Max": (Node("Max", [a, b]), [NAN, NAN, 3, NAN]),
        "Min": (Node("Min", [a.astype(np.float16), b.astype(np.float16)]), [NAN, NAN, 2, NAN]),
        **{
            f"ArgMax {last}": (
                Node("ArgMax", [x], attributes={"axis": 1, "keepdims": 0, "select_last_index": last}),
                [0, 2, 0],
            )
            for last in (0, 1)
        },
    }


CASES = {**sums(), **products(), **extrema(), **undefined()}
ALL_TERMS = "all terms"
NODES = {**{name: node for name, (node, _) in CASES.items()}, ALL_TERMS: Node("ReduceSum", [MANY_TERMS])}


@pytest.fixture(scope="module")
def results() -> Mapping[str, tuple[Array, Array]]:
    """What compiled code gives, and the interpreter, of all nodes in one program."""
    cases = [NodeCase(name, node.model(), node.feeds, {"y0": np.zeros(0)}) for name, node in NODES.items()]
    model, feeds, _ = merged(cases)
    model.opset_import[0].version = Node("", []).opset
    places = {name: number for number, name in enumerate(NODES)}
    choices = [Choice("MatMul", way, origin=f"n{places[f'MatMul {way}']}") for way in PRODUCTS]
    program = lowered(model, choices)
    compiled, interpreted = run_program(program, feeds), interpret(program, feeds)
    return {name: (compiled[f"v{place}_y0"], interpreted[f"v{place}_y0"]) for name, place in places.items()}


@pytest.mark.parametrize("name", CASES)
def test_compiled_code_gives_what_double_precision_does(name: str, results: Mapping[str, tuple[Array, Array]]) -> None:
    compiled, interpreted = results[name]

    np.testing.assert_array_equal(compiled, np.array(CASES[name][1], compiled.dtype))
    np.testing.assert_array_equal(compiled, interpreted)


def test_two_hundred_thousand_terms_in_single_precision(results: Mapping[str, tuple[Array, Array]]) -> None:
    compiled, interpreted = results[ALL_TERMS]

    np.testing.assert_array_equal(compiled, interpreted)
    assert abs(float(compiled.item()) / MANY_TERMS.astype(np.float64).sum() - 1) < 1e-7


def test_running_changes_nothing_that_is_extracted() -> None:
    program = lowered(Node("ReduceMean", [np.ones((3, 4), np.float16)]).model())
    before = format_dag(extract(program.sdfg))

    run_program(program, {"x0": np.ones((3, 4), np.float16)})

    assert format_dag(extract(program.sdfg)) == before
