"""Programs of a single ONNX operator, and what ONNX's reference implementation says to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from dace.sdfg.nodes import Tasklet
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.canonical_dag.extraction import extract
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.canonical_dag.forms.text_form import format_dag
from dfcompile.frontend import Program, ReadOptions
from dfcompile.frontend.onnx import onnxruntime_evaluation
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_nests, registered_expansions
from dfcompile.lowering.nests.program import NestProgram
from dfcompile.lowering.nests.sdfg import sdfg_program
from tests.interpreter import interpret

Array = npt.NDArray[np.generic]
Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]

TABLE = registered_expansions()


@dataclass(frozen=True)
class Node:
    """An ONNX operator with its operands.

    Attributes:
        op_type: such as ``Relu``.
        operands: by position, ``None`` for one that is omitted.
        constants: positions of the operands that are parameters of the model; the others are inputs.
        attributes: of the operator.
        results: 1 for a result that is used, 0 for one that is not.
        opset: version of ONNX's operators.
        domain: of the operator.
    """

    op_type: str
    operands: Sequence[Array | None]
    constants: Sequence[int] = ()
    attributes: Mapping[str, Attribute] | None = None
    results: Sequence[int] = (1,)
    opset: int = 18
    domain: str = ""

    @property
    def names(self) -> list[str]:
        return ["" if value is None else f"x{position}" for position, value in enumerate(self.operands)]

    @property
    def feeds(self) -> dict[str, Array]:
        """The operands that are inputs."""
        return {name: value for name, value in self._values().items() if int(name[1:]) not in self.constants}

    def model(self) -> onnx.ModelProto:
        outputs = [f"y{position}" if used else "" for position, used in enumerate(self.results)]
        node = helper.make_node(self.op_type, self.names, outputs, name="op", domain=self.domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in (self.attributes or {}).items())
        feeds = self.feeds
        graph = helper.make_graph(
            [node],
            self.op_type,
            [_typed(name, value) for name, value in feeds.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs if name],
            [numpy_helper.from_array(value, name) for name, value in self._values().items() if name not in feeds],
        )
        sets = [helper.make_opsetid("", self.opset), *([helper.make_opsetid(self.domain, 1)] if self.domain else [])]
        model = helper.make_model(graph, opset_imports=sets)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)

    def reference(self) -> dict[str, Array]:
        """Return what ONNX's reference implementation computes; onnxruntime, of an operator of its own."""
        model = self.model()
        if self.domain:
            answer = onnxruntime_evaluation.evaluated(model, self.feeds)
            assert answer is not None
            return dict(zip((output.name for output in model.graph.output), answer[1], strict=True))
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, self.feeds)
        return {output.name: np.asarray(value) for output, value in zip(model.graph.output, results, strict=True)}

    def _values(self) -> dict[str, Array]:
        found = zip(self.names, self.operands, strict=True)
        return {name: np.asarray(value) for name, value in found if value is not None}


def _typed(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def lowered(model: onnx.ModelProto, choices: Sequence[Choice] = ()) -> Program:
    """Return the model as map scopes, from which a canonical DAG can be extracted."""
    program = program_of("model", model, ReadOptions())
    return checked_maps(lower_to_nests(lower_to_canonical(program, TABLE, choices), TABLE, choices))


def checked_maps(nests: NestProgram) -> Program:
    """Return nests as an SDFG, from which the same canonical DAG is extracted as from them."""
    parameters, maps = tuple(nests.parameters), sdfg_program(nests)
    assert parameters == tuple(maps.parameters)
    assert nests.complex_types == maps.complex_types
    of_nests, of_sdfg = extract_graph(nests.graph, parameters=parameters), extract(maps.sdfg, parameters=parameters)
    assert format_dag(of_nests) == format_dag(of_sdfg)
    return maps


def check_node(
    node: Node,
    expected: Array | None = None,
    *,
    choices: Sequence[Choice] = (),
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> Program:
    """Check the lowered operator against the expected result, or else against ONNX's reference implementation.

    Returns:
        Its map scopes.

    Raises:
        AssertionError: shape, data type or values differ.
        UserError: the operator, or this form of it, is not supported.
    """
    program = lowered(node.model(), choices)
    results = node.reference() if expected is None else {"y0": expected}
    assert_same(interpret(program, node.feeds), results, rtol, atol)
    return program


def assert_same(found: Mapping[str, Array], expected: Mapping[str, Array], rtol: float, atol: float) -> None:
    """Compare results by name: shapes, data types, values."""
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        assert found[name].dtype == value.dtype, name
        np.testing.assert_allclose(
            found[name].astype(np.float64), value.astype(np.float64), rtol=rtol, atol=atol, err_msg=name
        )


def random(shape: Sequence[int], dtype: str = "float32", seed: int = 0) -> npt.NDArray[np.float32]:
    """Return random data: standard normal, small integers, or truth values (typed as what it mostly is)."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        return generator.integers(-9 if kind == "i" else 0, 10, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def scopes(program: Program) -> list[str]:
    """Return the names of the tasks, in the order in which they were made."""
    tasklets = [node for node in program.sdfg.start_state.nodes() if isinstance(node, Tasklet)]
    annotations = [Annotation.of_location(tasklet.location, tasklet.label) for tasklet in tasklets]
    return [annotation.scope for annotation in annotations if not annotation.is_initialisation]
