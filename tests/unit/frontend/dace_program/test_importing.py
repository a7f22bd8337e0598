"""A ``@dace.program`` becomes operators: one per operation, over all iterations of the maps around it."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import Model, OperatorNode, ReadOptions, read_model, reference_answer
from dfcompile.lowering import registered_expansions
from tests.written_programs import ProgramWriter


def read(write: ProgramWriter, text: str, **dims: int) -> Model:
    return read_model(write(text), ReadOptions(dims=dims))


def operators(model: Model) -> list[tuple[str, str]]:
    nodes = (node for node in model.program.sdfg.start_state.nodes() if isinstance(node, OperatorNode))
    return [(node.op_type, node.name) for node in nodes]


def attributes(model: Model, name: str) -> dict[str, object]:
    nodes = (node for node in model.program.sdfg.start_state.nodes() if isinstance(node, OperatorNode))
    return next(dict(node.attributes) for node in nodes if node.name == name)


def test_operations_of_a_map_are_operators_over_its_iterations(write_program: ProgramWriter) -> None:
    model = read(
        write_program,
        """
        @dace.program
        def detect(H: dace.complex64[N, 4, 2], y: dace.complex64[N, 4], s: dace.complex64[N, 2]):
            for n in dace.map[0:N]:
                W = np.conj(np.transpose(H[n]))
                s[n] = np.linalg.inv(W @ H[n]) @ (W @ y[n])
        """,
        N=3,
    )

    assert operators(model) == [
        ("dace.Map", "numpy_conj_line10"),
        ("linalg.matmul", "MatMult_line11"),
        ("linalg.inv", "inv_line11"),
        ("linalg.matmul", "MatMult_line11_2"),
        ("linalg.matmul", "MatMult_line11_3"),
    ]
    assert attributes(model, "numpy_conj_line10") == {
        "expression": "conj(a)",
        "extents": [3, 2, 4],
        "spatial": 1,
        "reads": [["i0", "i2", "i1"]],  # the transposition moves nothing
        "write": ["i0", "i1", "i2"],
    }
    assert [(port.name, port.shape) for port in model.program.inputs] == [("H", (3, 4, 2)), ("y", (3, 4))]
    assert [(port.name, port.shape) for port in model.program.outputs] == [("s", (3, 2))]


def test_what_is_not_written_stays(write_program: ProgramWriter) -> None:
    model = read(
        write_program,
        """
        @dace.program
        def inner(A: dace.float64[N], B: dace.float64[N]):
            B[1:-1] = A[:-2] + A[2:]
        """,
        N=8,
    )

    assert [name for _, name in operators(model)] == ["Add_line9", "copy_line9"]
    assert attributes(model, "copy_line9")["has_base"] == 1
    assert [port.name for port in model.program.inputs] == ["A", "B"]


def test_an_argument_that_is_overwritten_is_no_input(write_program: ProgramWriter) -> None:
    text = """
        @dace.program
        def twice(A: dace.float64[N], B: dace.float64[N]):
            B[:] = A * 2
            return B + 1
        """
    model = read(write_program, text, N=4)

    assert [port.name for port in model.program.inputs] == ["A"]
    assert [port.name for port in model.program.outputs] == ["B", "return"]
    answer = reference_answer(model, [np.arange(4.0)])
    assert answer.outputs[1].tolist() == [1.0, 3.0, 5.0, 7.0]


def test_what_nobody_reads_is_left_out(write_program: ProgramWriter) -> None:
    model = read(
        write_program,
        """
        @dace.program
        def twice(A: dace.float64[N], B: dace.float64[N]):
            unused = A * 3
            B[:] = A
            B[:] = A * 2
        """,
        N=4,
    )

    assert [name for _, name in operators(model)] == ["Mult_line11"]


def test_unrolled_loops_carry_state(write_program: ProgramWriter) -> None:
    model = read(
        write_program,
        """
        @dace.program
        def steps(A: dace.float64[N], B: dace.float64[N]):
            B[:] = A
            for t in dace.unroll(range(3)):
                B[:] = B * 0.5
        """,
        N=4,
    )

    assert [name for _, name in operators(model)] == ["Mult_line11", "Mult_line11_2", "Mult_line11_3"]


def test_a_view_of_a_view_writes_what_it_sees(write_program: ProgramWriter) -> None:
    model = read(
        write_program,
        """
        @dace.program
        def marked(A: dace.float64[N, 4], B: dace.float64[N, 4]):
            for n in dace.map[0:N]:
                row = A[n]
                row[1] = 3.0
                B[n] = A[n] + row
        """,
        N=2,
    )

    assert [port.name for port in model.program.outputs] == ["A", "B"]


def test_iterations_that_touch_other_elements_are_independent(write_program: ProgramWriter) -> None:
    """Row and column that are read are none of those that are written; a map of one iteration has no other."""
    model = read(
        write_program,
        """
        @dace.program
        def complement(A: dace.float64[N, 3, 3]):
            for k in dace.unroll(range(2)):
                for n in dace.map[0:N]:
                    for i, j in dace.map[k + 1:3, k + 1:3]:
                        A[n, i, j] = A[n, i, j] - A[n, i, k] * A[n, k, j]
        """,
        N=2,
    )

    assert [port.name for port in model.program.outputs] == ["A"]
    given = np.arange(18.0).reshape(2, 3, 3) ** 2
    (found,) = reference_answer(model, [given.copy()]).outputs
    assert found[0, 2, 2] == given[0, 2, 2] - given[0, 2, 0] * given[0, 0, 2] - found[0, 2, 1] * found[0, 1, 2]


REFUSED = {
    "a loop": (
        "def f(A: dace.float64[N]):\n    for t in range(4):\n        A[:] = A * 0.5",
        r"given\.py:9: a loop over 't' that carries state .* \(dace\.map.*dace\.unroll",
    ),
    "a loop within a map": (
        "def f(A: dace.float64[N, N]):\n    for i in dace.map[0:N]:\n        for t in range(1, N): A[i, t] = A[i, 0]",
        r"given\.py:10: a loop over 't' that carries state",
    ),
    "a branch": (
        "def f(A: dace.float64[N]):\n    if A[0] > 0:\n        A[:] = A * 0.5",
        r"given\.py:9: a branch that depends on data",
    ),
    "iterations that depend on each other": (
        "def f(A: dace.float64[N]):\n    for i in dace.map[1:N]:\n        A[i] = A[i - 1] * 0.5",
        r"given\.py:10: iterations of the map depend on each other through 'A'",
    ),
    "iterations that read what one of them writes": (
        "def f(A: dace.float64[N]):\n    for i in dace.map[1:N]:\n        A[i] = A[i] * A[N - 1]",
        r"given\.py:10: iterations of the map depend on each other through 'A'",
    ),
    "what DaCe has no expansion for": (
        "def f(A: dace.float64[N, N]):\n    B = A * 2\n    C = np.copy(B[0])\n    return C",
        r"given\.py:10: DaCe cannot parse the program: NotImplementedError",
    ),
    "an option that DaCe lacks": (
        "def f(A: dace.float64[N, N]):\n    B = A * 2\n    return np.max(B, axis=1, keepdims=True)",
        r"given\.py:10: DaCe cannot parse the program: .*keepdims",
    ),
    "a branch by place": (
        "def f(A: dace.float64[N, N]):\n    for i, j in dace.map[0:N, 0:N]:\n        if j > i: A[i, j] = 0.0",
        r"given\.py:10: a branch that depends on data or on a loop",
    ),
    "one element": (
        "def f(A: dace.float64[N], B: dace.float64[1]):\n    for i in dace.map[0:N]:\n        B[0] = A[i]",
        r"given\.py:10: all iterations of a map write one element",
    ),
    "triangular loops": (
        "def f(A: dace.float64[N, N]):\n    for i in dace.map[0:N]:\n        for j in dace.map[i:N]: A[i, j] = 1.0",
        r"given\.py:10: range i:8 of 'j' depends on data or on another loop",
    ),
    "a call of Python": (
        "def f(A: dace.float64[N, N]):\n    return np.linalg.svd(A)",
        r"given\.py:9: a call that DaCe leaves to Python \(callback_9\)",
    ),
    "a size that depends on data": (
        "def f(A: dace.float64[N], k: dace.int64):\n    return A[:k] * 2",
        r"given\.py:9: array 'A_0': shape \[__sym_k\] depends on data",
    ),
    "an index that depends on data": (
        "def f(A: dace.float64[N], k: dace.int64[N], B: dace.float64[N]):\n    for n in dace.map[0:N]: B[n] = A[k[n]]",
        r"given\.py:9: part \[__sym_k_index\] depends on data",
    ),
    "what holds no numbers": (
        "def f(A: dace.float64[N, 2]):\n    return np.argmax(A, axis=1)",
        r"given\.py:9: 'argmax_A' holds _val_and_idx against numbers of NumPy",
    ),
    "a matrix of one element": (
        "def f(A: dace.float64[N, 1, 1]):\n    for n in dace.map[0:N]: A[n] = np.linalg.inv(A[n])",
        r"given\.py:9: ",
    ),
    "another shape": (
        "def f(A: dace.float64[N, 2]):\n    return np.reshape(A, (2, N)) * 2",
        r"given\.py:9: 'A_0' sees \[8, 2\] elements as \[2, 8\]",
    ),
    "no program of DaCe's": (
        "def f(A: dace.float64[N]):\n    return A + lambda x: x",
        r"given\.py:9: .*invalid syntax",
    ),
    "nothing written": (
        "def f(A: dace.float64[N]):\n    b = A * 2",
        r"given\.py: the program writes no argument and returns nothing",
    ),
    "no type": ("def f(A, B: dace.float64[N]):\n    B[:] = A", r"given\.py: argument 'A' has no type"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_line(what: str, write_program: ProgramWriter) -> None:
    text, message = REFUSED[what]

    with pytest.raises(UserError, match=message):
        read(write_program, f"\n@dace.program\n{text}\n", N=8)


PLAIN = "\n@dace.program\ndef f(A: dace.float64[N], B: dace.float64[N]):\n    B[:] = A * 2\n"


def test_sizes(write_program: ProgramWriter) -> None:
    path = write_program(PLAIN)

    with pytest.raises(UserError, match=r"symbol 'N' of the program has no size \(--dim N=…\)$"):
        read_model(path)
    with pytest.raises(UserError, match=r"--dim N=0: against a size of at least 1$"):
        read_model(path, ReadOptions(dims={"N": 0}))
    with pytest.raises(UserError, match=r"--dim K: the program has no symbol of that name"):
        read_model(path, ReadOptions(dims={"N": 4, "K": 2}))
    with pytest.raises(UserError, match=r"--shape A: against sizes of the program's symbols"):
        read_model(path, ReadOptions(shapes={"A": (4,)}, dims={"N": 4}))


def test_several_programs(write_program: ProgramWriter) -> None:
    other = PLAIN.replace("def f", "def g")

    with pytest.raises(UserError, match=r"found 2 programs \(f, g\) against one, or one named 'given'$"):
        read(write_program, PLAIN + other, N=4)
    assert read(write_program, PLAIN + other.replace("def g", "def given"), N=4).program.name == "given"


def test_example_inputs(write_program: ProgramWriter) -> None:
    given = read(write_program, PLAIN + "\ndef example_inputs(N):\n    return {'A': np.arange(N) / 1.0}\n", N=4)

    assert given.examples[0].tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(UserError, match=r"example_inputs gives 'A' as int64\[4\] against float64\[4\]$"):
        read(write_program, PLAIN + "\ndef example_inputs(N):\n    return {'A': np.arange(N)}\n", N=4)
    with pytest.raises(UserError, match=r"given\.py:13: ZeroDivisionError"):
        read(write_program, PLAIN + "\n\ndef example_inputs():\n    return 1 / 0\n", N=4)


@pytest.mark.parametrize(("domain", "op_type"), [("dace", "Map"), ("linalg", "inv"), ("", "dace.Map")])
def test_an_onnx_file_cannot_name_operators_of_programs(domain: str, op_type: str, tmp_path: Path) -> None:
    """Their expressions become code: they come from a file that is run anyway, never from data."""
    node = onnx.helper.make_node(op_type, ["x"], ["y"], domain=domain, expression="a", extents=[4], write=["i0"])
    border = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", border[:1], border[1:])
    opsets = [onnx.helper.make_opsetid(name, 20 if not name else 1) for name in dict.fromkeys(["", domain])]
    path = tmp_path / "given.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), path)
    operators = frozenset(registered_expansions().op_types("onnx"))

    with pytest.raises(UserError, match=r"(no operator|operator) '?(dace\.Map|linalg\.inv)"):
        read_model(path, ReadOptions(operators=operators))
