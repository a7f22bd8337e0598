"""All kinds of cases."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import onnx
from onnx import helper, numpy_helper

from dfcompile.frontend.element_kind import is_number
from tests.fuzz.brute_cases import drawn_tiny_model, judge_brute
from tests.fuzz.cache_cases import damaged_cache, judge_cache
from tests.fuzz.compiled_cases import compiled_nodes, judge_compiled
from tests.fuzz.dag_cases import judge_dag, mutated_dag
from tests.fuzz.draw import Draw
from tests.fuzz.figure_cases import judge_figures
from tests.fuzz.function_cases import with_functions
from tests.fuzz.generated_models import MOST_NODES, ModelCase, generated_model
from tests.fuzz.kind import Case, Kind
from tests.fuzz.memory_cases import judge_memory
from tests.fuzz.model_judge import judge_model
from tests.fuzz.model_mutations import mutated
from tests.fuzz.order_cases import drawn_smallest_model, judge_orders
from tests.fuzz.overwrite_cases import drawn_overwrite, judge_overwrite
from tests.fuzz.published_models import published_model
from tests.fuzz.quantised_cases import drawn_configuration, judge_configuration
from tests.fuzz.setup_cases import judge_setup, mutated_setup
from tests.fuzz.slower_cases import drawn_small_model, judge_slower
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


def _empty(draw: Draw) -> Case:
    """Return a model some of whose dimensions have no elements."""
    draw.empties = 0.15
    return _case(generated_model(draw, draw.choice([1, 1, 2, 3])))


def _fixed(draw: Draw) -> Case:
    """Return a model some of whose inputs are fixed, those that would be constants too."""
    draw.variable = 0.6
    case = _case(generated_model(draw, draw.choice([1, 1, 2, 3])))
    told = [name for name, value in case.feeds.items() if is_number(value.dtype.name) and not name.startswith("x0_0")]
    return replace(case, fixed=tuple(told), plain=_with_constants(case, told))


def _with_constants(case: Case, names: Sequence[str]) -> bytes:
    """Return the model of a case with some inputs as initializers."""
    model = onnx.load_model_from_string(case.content)
    inputs = [value for value in model.graph.input if value.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.graph.initializer.extend(numpy_helper.from_array(case.feeds[name], name) for name in names)
    return model.SerializeToString()


def _weighted(draw: Draw) -> Case:
    """Return a model some of whose inputs are constants, of whatever type: weights as they are stored."""
    case = _case(generated_model(draw, draw.choice([1, 1, 1, 2, 3])))
    weights = [name for name in case.feeds if draw.chance(0.4)]
    return replace(case, content=_with_constants(case, weights))


def _function(draw: Draw) -> Case:
    case = _case(generated_model(draw, draw.integer(1, 3)))
    return replace(case, content=with_functions(case.content, draw), plain=case.content)


def _case(model: ModelCase) -> Case:
    return Case(".onnx", model.model.SerializeToString(), model.feeds)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "node": Kind(_node, judge_model),
        "graph": Kind(_graph, judge_model),
        "folded": Kind(_folded, judge_model),
        "empty": Kind(_empty, judge_model),
        "fixed": Kind(_fixed, judge_model),
        "function": Kind(_function, judge_model),
        "figures": Kind(_weighted, judge_figures),
        "mutated": Kind(_mutated, judge_model),
        "published": Kind(_published, judge_model),
        "compiled": Kind(compiled_nodes, judge_compiled),
        "dag": Kind(mutated_dag, judge_dag),
        "setup": Kind(mutated_setup, judge_setup),
        "system": Kind(mutated_system, judge_system),
        "caches": Kind(damaged_cache, judge_cache),
        "overwrites": Kind(drawn_overwrite, judge_overwrite),
        "quantised": Kind(drawn_configuration, judge_configuration),
        "memory": Kind(drawn_small_model, judge_memory),
        "slower": Kind(drawn_small_model, judge_slower),
        "brute": Kind(drawn_tiny_model, judge_brute),
        "orders": Kind(drawn_smallest_model, judge_orders),
    }
)
