"""Checks for expansions and passes: numbers, volumes, invariants, schedules, verification, determinism."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dfcompile import lowering
from dfcompile.canonical_dag import CanonicalDag, DagPass, format_dag, registered_dag_passes
from dfcompile.canonical_dag.extraction.extract import extract
from dfcompile.frontend import Coverage, Level, Model, ModelNode, Program
from dfcompile.generators.single_operators import program_of_operator
from dfcompile.lowering import CanonicalOperator, Choice, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.lowering.execution.verification import verified_deviation
from dfcompile.lowering.levels import program_of
from dfcompile.records import replace
from dfcompile.testing.models import NO_PARAMETERS, Values, canonical_dags, check_dag, model_of_text

# A chain with a fork and a join, a product between element-wise operators, a view, and a result that nobody uses.
GRAPHS = (
    "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) u = Neg(t) v = Abs(t) y = Mul(u, v) }",
    """g (float[4,6] x, float[6,5] w, float[5] b) => (float[4,5] y) {
        s = Tanh(x) p = MatMul(s, w) q = Add(p, b) y = Relu(q)
    }""",
    """g (float[2,6] x) => (float[2] y, float[2,6] z) {
        z = Sigmoid(x) t = Softmax <axis = 1> (z)
        a = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (t, a) d = Exp(z)
    }""",
)


def check_pass(
    name: str,
    *,
    graphs: Sequence[str] = GRAPHS,
    parameters: Mapping[str, Values] = NO_PARAMETERS,
    dags: Iterable[CanonicalDag] = (),
    seed: int = 0,
) -> tuple[CanonicalDag, ...]:
    """Check a registered pass, with its options, and return the canonical DAGs that it leads to.

    Of a pass of programs, each graph is lowered with it:

    * Numbers: the lowered model, compiled and run on random data, gives what the original gives.
    * Verification: every program after the pass is valid, its canonical DAG can be extracted and is verified, and
      schedules of it are accepted by the independent checker.

    Of a pass of canonical DAGs, on those of the generators and on ``dags``: what it returns is verified, and schedules
    are accepted. Of both:

    * Determinism: all of it a second time gives the same bytes.
    * The argument is what it was before.

    Args:
        name: as in ``--passes``, such as ``fuse-elementwise{max=8}``.
        graphs: for passes of programs, in ONNX's text form.
        parameters: values of constant operands in the graphs by name.
        dags: for passes of canonical DAGs.
        seed: of the random data.

    Raises:
        AssertionError: two runs differ, or the argument was changed.
        DfcompileError: there is no such pass, or a stage rejects what it returned.
    """
    chosen = lowering.choose_passes([name], lowering.registered_passes(), registered_dag_passes())
    if chosen.of_dags:
        return tuple(_checked_dag(found, dag) for found in chosen.of_dags for dag in (*canonical_dags(), *dags))
    models = [model_of_text(graph, parameters) for graph in graphs]
    return tuple(_checked_lowering(found, model, seed) for found in chosen.of_programs for model in models)


def _checked_lowering(found: lowering.LoweringPass, model: Model, seed: int) -> CanonicalDag:
    maps = _lowered(found, model.program)
    dag = extract(maps.sdfg)
    check_dag(dag, extract(_lowered(found, model.program).sdfg), found.name)
    verified_deviation(model, maps, seed)
    return dag


def _lowered(found: lowering.LoweringPass, program: Program) -> Program:
    table = lowering.registered_expansions()
    library = lowering.lower_to_canonical(_applied(found, program), table)
    nests = lowering.apply_passes(lowering.lower_to_nests(_applied(found, library), table), [found])
    return _applied(found, program_of(nests))


def _applied(found: lowering.LoweringPass, program: Program) -> Program:
    before = program.sdfg.to_json()
    changed = lowering.apply_passes(program, [found])
    assert _nodes(program.sdfg.to_json()) == _nodes(before), f"{found.name}: changes the program that it is given"
    return changed


def _nodes(sdfg: Mapping[str, object]) -> str:
    """Return what an SDFG's JSON form says of its graph and its arrays; the rest is made anew each time."""
    attributes = sdfg["attributes"]
    assert isinstance(attributes, Mapping)
    return f"{sdfg['nodes']} {attributes['_arrays']}"


def _checked_dag(found: DagPass, dag: CanonicalDag) -> CanonicalDag:
    before = format_dag(dag)
    changed, again = found.apply(dag), found.apply(dag)
    assert format_dag(dag) == before, f"{found.name}: changes the canonical DAG that it is given"
    check_dag(changed, again, found.name)
    return changed


TOLERANCE = 1e-5  # absolute, for operands between -1 and 1


def canonical_program(
    operator: CanonicalOperator, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...], dtype: str = "float32"
) -> Program:
    """Return a program of level 1 that is one canonical operator ``x0, x1, … -> y``.

    Args:
        operator: such as ``MatMul(transpose_a=True)``.
        inputs: shapes of the operands.
        output: shape of the result.
        dtype: numpy name, of all arrays.
    """
    op_type, operands = type(operator).__name__, {f"x{position}": shape for position, shape in enumerate(inputs)}
    program = program_of_operator(op_type, operator.attributes(), Level.CANONICAL, operands, ("y", output), dtype)
    return replace(program, nodes=(ModelNode("op", op_type, Coverage.COSTED),))


def check_expansion(
    operator: CanonicalOperator,
    name: str,
    *,
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    reference: Callable[..., Values],
    dtype: str = "float32",
    seed: int = 0,
) -> CanonicalDag:
    """Check one expansion of a canonical operator and return its canonical DAG.

    * Numbers: the lowered operator, compiled and run on random data, gives what ``reference`` gives.
    * Volumes and invariants: the canonical DAG can be extracted and is verified; every computational node is canonical.
    * Schedules for several numbers of processing elements are accepted by the independent checker.
    * Determinism: all of it a second time gives the same bytes.

    Args:
        operator: such as ``MatMul(transpose_a=True)``.
        name: of the expansion.
        inputs: shapes of the operands.
        output: shape of the result.
        reference: called with the operands as arrays; returns the result.
        dtype: numpy name, of all arrays.
        seed: of the random data.

    Raises:
        AssertionError: the numbers differ, or two runs do.
        DfcompileError: the expansion does not exist, or a stage rejects what it built.
    """
    program = canonical_program(operator, inputs, output, dtype)
    op_type = type(operator).__name__
    choices = (Choice(op_type, name),)
    table = registered_expansions()
    table.check(choices[0])
    lowered, again = (lower_to_maps(program, table, choices) for _ in range(2))
    dag = extract(lowered.sdfg)
    check_dag(dag, extract(again.sdfg), f"{op_type}={name}")
    generator = np.random.default_rng(seed)
    data = [np.asarray(generator.uniform(-1, 1, size=shape), dtype=dtype) for shape in inputs]
    found = run_program(lowered, {f"x{position}": value for position, value in enumerate(data)})["y"]
    error = np.max(np.abs(np.subtract(found, reference(*data), dtype=np.float64)), initial=0.0)
    assert error < TOLERANCE, f"{op_type}={name}: absolute error {error:.3g} against less than {TOLERANCE}"
    return dag


def check_onnx_expansion(
    op_type: str, name: str, *, graph: str, parameters: Mapping[str, Values] = NO_PARAMETERS, seed: int = 0
) -> CanonicalDag:
    """Check one expansion of an ONNX operator in a small graph and return its canonical DAG.

    The same is checked as by `check_expansion`; the reference is onnxruntime where it is installed, else ONNX's own
    implementation. Other operators are lowered by their defaults.

    Args:
        op_type: ONNX operator type, such as ``Conv``.
        name: of the expansion.
        graph: in ONNX's text form, such as ``g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }``.
        parameters: values of constant operands by name.
        seed: of the random data.

    Raises:
        AssertionError: the graph has no such operator, or two runs differ.
        DfcompileError: the expansion does not exist, a stage rejects what it built, or the numbers differ.
    """
    model = model_of_text(graph, parameters)
    choices, table = (Choice(op_type, name),), registered_expansions()
    table.check(choices[0])
    lowered, again = (lower_to_maps(lower_to_canonical(model.program, table, choices), table) for _ in range(2))
    used = [chosen for chosen in lowered.chosen if (chosen.op_type, chosen.name) == (op_type, name)]
    assert used, f"{op_type}={name}: no operator of the graph is lowered by it"
    dag = extract(lowered.sdfg)
    check_dag(dag, extract(again.sdfg), f"{op_type}={name}")
    verified_deviation(model, lowered, seed)
    return dag
