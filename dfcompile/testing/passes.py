"""Checks for passes, ours and those of plug-ins: numbers, verification, determinism, arguments left alone."""

from collections.abc import Iterable, Mapping, Sequence

from dfcompile import lowering
from dfcompile.canonical_dag import CanonicalDag, DagPass, format_dag, registered_dag_passes
from dfcompile.canonical_dag.extraction.extract import extract
from dfcompile.frontend import Model, Program
from dfcompile.lowering.execution.verification import verified_deviation
from dfcompile.lowering.levels import program_of
from dfcompile.testing.canonical_dags import canonical_dags, check_dag
from dfcompile.testing.models import NO_PARAMETERS, Values, model_of_text

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
