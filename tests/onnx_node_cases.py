"""ONNX's own node tests: models of one operator with operands and expected results, as ONNX publishes them."""

import os
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from dfcompile.frontend import is_number
from dfcompile.frontend.normaliser.functions import FUNCTIONS
from dfcompile.frontend.normaliser.wiring import FOLDED
from tests.locations import BUILDS
from tests.onnx_nodes import TABLE, Array

_Sets: TypeAlias = Sequence[Sequence[object]]  # operands, and what is expected

# Operands that tell a shape, axes and the like: constants in any model that can be compiled.
_STRUCTURE: Mapping[str, Sequence[int]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CastLike": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "Compress": (1,),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "Gather": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (0, 1, 2, 3, 4),
    "NonZero": (0,),
    "OneHot": (1,),
    "Pad": (1, 2, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unique": (0,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}


@dataclass(frozen=True)
class NodeCase:
    """A published test of one operator.

    Attributes:
        name: as ONNX calls it, without ``test_``.
        model: with constants as initializers.
        feeds: the inputs.
        expected: the outputs that have elements.
        about: the operator that it tests, as which it may stand or as what ONNX defines it as.
    """

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    expected: Mapping[str, Array]
    about: str = ""

    @property
    def node(self) -> onnx.NodeProto:
        node: onnx.NodeProto = self.model.graph.node[0]
        return node

    @property
    def opset(self) -> int:
        """The newest operator set in which the case's operator is still as it was."""
        published = int(self.model.opset_import[0].version)
        newest = onnx.defs.onnx_opset_version()
        versions = [
            onnx.defs.get_schema(self.node.op_type, version, "").since_version for version in (published, newest)
        ]
        return newest if versions[0] == versions[1] else published


# Four roundings of each type of half the bits.
ROUNDED = {"bfloat16": 3.2e-2, "float16": 4e-3}


def tolerance(case: NodeCase) -> float:
    """ONNX's own is 1e-3; narrower types need more, as an Attention rounds after each of its parts."""
    dtypes = {value.dtype.name for value in (*case.feeds.values(), *case.expected.values())}
    return max((ROUNDED.get(dtype, 1e-3) for dtype in dtypes), default=0.0)


def node_cases(*, constants: bool) -> tuple[NodeCase, ...]:
    """Return the published tests of every operator that has an expansion or is expanded by its definition.

    Args:
        constants: all operands but the first are constants, rather than only those that must be; tests for which that
            is the same are left out then.
    """
    known = {*TABLE.op_types("onnx"), *FOLDED, "Compress"}
    functions = [name for name, model, _ in _published() if model.graph.node[0].op_type in FUNCTIONS]
    # ONNX publishes one case after another of these few, and dfcompile has no expansion of its own for them.
    chosen = frozenset(() if constants else functions[::5])
    return tuple(
        _case(name, model, sets, constants=constants)
        for name, model, sets in _published()
        if (model.graph.node[0].op_type in known or name in chosen)
        and model.graph.node[0].domain in ("", "ai.onnx")
        and not _is_beyond_arrays(sets)
        and (not constants or _has_more_constants(model.graph.node[0]))
    )


def _has_more_constants(node: onnx.NodeProto) -> bool:
    most, least = (set(_constant_names(node, constants=constants)) for constants in (True, False))
    return most != least


@cache
def every_case() -> tuple[NodeCase, ...]:
    """Return all published node tests whose operands and results are tensors, with what must be constant as such.

    A test may have the nodes that ONNX defines an operator as, instead of it: ``name_expanded``.
    """
    cases = _collected()
    found = []
    for name, (model, sets) in cases.items():
        whole = cases.get(name.partition("_expanded")[0], (model, sets))[0].graph
        if len(whole.node) == 1 and not _is_beyond_arrays(sets):
            (node,) = whole.node
            fixed = {
                one.name for one, other in zip(model.graph.input, whole.input, strict=False)
                if other.name in set(_constant_names(node, constants=False))
            }  # fmt: skip
            found.append(_with_constants(name, model, sets, fixed, node.op_type))
    return tuple(found)


def _published() -> Iterator[tuple[str, onnx.ModelProto, _Sets]]:
    """Yield the tests whose model is one node."""
    return ((name, model, sets) for name, (model, sets) in _collected().items() if len(model.graph.node) == 1)


@cache
def _collected() -> Mapping[str, tuple[onnx.ModelProto, _Sets]]:
    """Return models and operands by name; ONNX computes what they should give, some seconds that workers share."""
    shared = Path(os.environ[BUILDS], "node_cases") if BUILDS in os.environ else None
    cases: dict[str, tuple[onnx.ModelProto, _Sets]]
    if shared is not None and shared.exists():
        cases = pickle.loads(shared.read_bytes())
        return cases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests compute overflows on purpose
        cases = {
            case.name.removeprefix("test_"): (case.model, (case.data_sets or [((), ())])[0])
            for case in collect_testcases(None)
            if case.model is not None
        }
    if shared is not None:
        written = shared.with_suffix(f".{os.getpid()}")
        written.write_bytes(pickle.dumps(cases))
        written.replace(shared)
    return cases


def _is_beyond_arrays(sets: _Sets) -> bool:
    """Whether operands or results are sequences or optional values: no tensors."""
    return any(isinstance(value, list | tuple) or value is None for values in sets for value in values)


def _case(name: str, published: onnx.ModelProto, sets: _Sets, *, constants: bool) -> NodeCase:
    (node,) = published.graph.node
    return _with_constants(name, published, sets, set(_constant_names(node, constants=constants)), node.op_type)


def _with_constants(name: str, published: onnx.ModelProto, sets: _Sets, wanted: set[str], about: str) -> NodeCase:
    operands = dict(zip((value.name for value in published.graph.input), map(_array, sets[0]), strict=True))
    results = dict(zip((value.name for value in published.graph.output), map(_array, sets[1]), strict=True))
    fixed = {each for each in wanted if is_number(operands[each].dtype.name)}  # others can only be refused
    model = onnx.ModelProto()
    model.CopyFrom(published)
    model.ir_version = 8  # before 4, constants were inputs as well
    del model.graph.input[:]
    for value in published.graph.input:
        if value.name in fixed:
            model.graph.initializer.append(numpy_helper.from_array(operands[value.name], value.name))
        else:
            model.graph.input.append(value)
    feeds = {name: value for name, value in operands.items() if name not in fixed}
    # What has no elements is no output of a program.
    return NodeCase(name, model, feeds, {name: value for name, value in results.items() if value.size}, about)


def _constant_names(node: onnx.NodeProto, *, constants: bool) -> Iterator[str]:
    structure = (1,) if node.op_type.startswith("Reduce") else _STRUCTURE.get(node.op_type, ())
    for position, name in enumerate(node.input):
        is_other = position > 0 and name != node.input[0]
        if name and (position in structure or (constants and is_other)):
            yield name


def _array(value: object) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def merged(cases: Sequence[NodeCase]) -> tuple[onnx.ModelProto, dict[str, Array], dict[str, Array]]:
    """Return one model that has all of the cases side by side, its inputs and its expected outputs."""
    graph = onnx.GraphProto(name="merged")
    feeds: dict[str, Array] = {}
    expected: dict[str, Array] = {}
    for number, case in enumerate(cases):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        prefix = f"v{number}_"
        for value in (*model.graph.input, *model.graph.output):
            value.name = prefix + value.name
        for constant in model.graph.initializer:
            constant.name = prefix + constant.name
        (node,) = model.graph.node
        node.name = f"n{number}"
        node.input[:] = [prefix + name if name else "" for name in node.input]
        node.output[:] = [prefix + name if name else "" for name in node.output]
        for field in ("input", "output", "initializer", "node"):
            getattr(graph, field).extend(getattr(model.graph, field))
        feeds |= {prefix + name: value for name, value in case.feeds.items()}
        expected |= {prefix + name: value for name, value in case.expected.items()}
    version = onnx.helper.make_opsetid("", cases[0].opset)
    return onnx.helper.make_model(graph, opset_imports=[version]), feeds, expected
