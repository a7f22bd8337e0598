"""All kinds of cases."""

from collections.abc import Mapping
from types import MappingProxyType

import onnx
from onnx import helper, numpy_helper

from tests.fuzz.compiled_cases import compiled_nodes, judge_compiled
from tests.fuzz.dag_cases import judge_dag, mutated_dag
from tests.fuzz.draw import Draw
from tests.fuzz.generated_models import MOST_NODES, ModelCase, generated_model
from tests.fuzz.kind import Case, Kind
from tests.fuzz.model_judge import judge_model
from tests.fuzz.model_mutations import mutated
from tests.fuzz.published_models import published_model
from tests.fuzz.setup_cases import judge_setup, mutated_setup
from tests.fuzz.system_cases import judge_system, mutated_system


def _node(draw: Draw) -> Case:
    return _case(generated_model(draw))


def _graph(draw: Draw) -> Case:
    return _case(generated_model(draw, draw.integer(2, MOST_NODES)))


def _mutated(draw: Draw) -> Case:
    return mutated(generated_model(draw, draw.choice([1, 1, 1, 2, 3])), draw)


def _published(draw: Draw) -> Case:
    return mutated(published_model(draw), draw)


def _folded(draw: Draw) -> Case:
    """Return a model of constants alone, which are folded: no result is an output as it is."""
    model = generated_model(draw, draw.choice([1, 1, 2, 3]))
    graph = model.model.graph
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in model.feeds.items())
    names = [output.name for output in graph.output]
    del graph.input[:], graph.output[:]
    for name in names:
        graph.node.append(helper.make_node("Identity", [name], [f"{name}_kept"]))
        graph.output.append(onnx.ValueInfoProto(name=f"{name}_kept"))
    return Case(".onnx", model.model.SerializeToString())


def _case(model: ModelCase) -> Case:
    return Case(".onnx", model.model.SerializeToString(), model.feeds)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "node": Kind(_node, judge_model),
        "graph": Kind(_graph, judge_model),
        "folded": Kind(_folded, judge_model),
        "mutated": Kind(_mutated, judge_model),
        "published": Kind(_published, judge_model),
        "compiled": Kind(compiled_nodes, judge_compiled),
        "dag": Kind(mutated_dag, judge_dag),
        "setup": Kind(mutated_setup, judge_setup),
        "system": Kind(mutated_system, judge_system),
    }
)
