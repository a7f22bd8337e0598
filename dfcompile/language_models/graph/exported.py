"""The graph that ``transformers`` runs, exported without weights; the one adapter of PyTorch and transformers."""

import importlib
import importlib.util
import warnings
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING

from dfcompile.errors import UserError
from dfcompile.host.stages import stage, work_of
from dfcompile.language_models.graph.kernels import CACHE, INPUT, PARAMETER, Trace, TraceNode
from dfcompile.language_models.steps.batch import Sequences

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from transformers import Cache

EAGER = ("gemma2", "gpt_oss")  # families that have no other attention
NEEDED = ("torch", "transformers")
_CACHE_NAMES = ("past_key", "past_key_values", "key_cache", "value_cache")


def exported_trace(values: Mapping[str, object], group: Sequences, where: str) -> Trace:
    """Return the graph that a model runs for prompts, or for new tokens and a cache, on tensors without values.

    Args:
        values: of the configuration.
        group: sequences of equal lengths; their past is in the cache, which is an input of the graph.
        where: names the configuration in errors.

    Raises:
        UserError: torch or transformers is not installed, or does not know the model.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"--from-graph: needs {' and '.join(missing)} (pip install 'dfcompile[transformers]')")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both packages warn of their own code
        with work_of(3) as work:
            with stage("importing PyTorch and transformers"), work.part(1):
                for name in NEEDED:
                    importlib.import_module(name)
            with stage("exporting the graph"), work.part(2, is_unseen=True):
                exported = _exported(values, where, (group.count, group.new), group.past)
            return trace_of(exported)


def _exported(values: Mapping[str, object], where: str, shape: tuple[int, int], past: int) -> "ExportedProgram":
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    family = str(values.get("model_type"))
    known = "deepseek_v3" if family == "kimi_k2" else family  # the same layers under another name
    if known not in CONFIG_MAPPING:
        raise UserError(f"{where}: transformers knows no model_type {family!r}")
    left_out = ("model_type", "architectures", "quantization_config")
    config = CONFIG_MAPPING[known](**{key: value for key, value in values.items() if key not in left_out})
    attention = "eager" if family in EAGER else "sdpa"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.bfloat16)
    if hasattr(model, "set_experts_implementation"):
        # Grouped products do no work for experts that are not chosen. Families without such a switch are dense ones,
        # and those that compute all experts.
        with suppress(ValueError):
            model.set_experts_implementation("grouped_mm")
    ids = torch.zeros(shape, dtype=torch.long, device="meta")
    if not past:
        return torch.export.export(model.eval(), (ids,), {"use_cache": False}, strict=False)
    past_ids = torch.zeros((shape[0], past), dtype=torch.long, device="meta")
    with torch.no_grad(), torch.device("meta"):
        cache = model.eval()(past_ids, use_cache=True).past_key_values
    cached = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    return torch.export.export(_with_cache_input(model, cache), (ids, cached), strict=False)


def _with_cache_input(model: "torch.nn.Module", cache: "Cache") -> "torch.nn.Module":
    """Return a model whose cache is an input: keys and values of each layer in turn, shaped as those of ``cache``."""
    import torch

    class WithCacheInput(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, past_key_values: list[torch.Tensor]) -> torch.Tensor:
            filled = copy(cache)
            filled.layers = [copy(layer) for layer in cache.layers]
            for layer, keys, values in zip(filled.layers, past_key_values[::2], past_key_values[1::2], strict=True):
                layer.keys, layer.values = keys, values
            logits: torch.Tensor = self.model(ids, past_key_values=filled, use_cache=True).logits
            return logits

    return WithCacheInput().eval()


def trace_of(program: "ExportedProgram") -> Trace:
    """Return an exported program as a trace."""
    roles = program.graph_signature
    parameters = {*roles.inputs_to_parameters, *roles.inputs_to_buffers, *roles.inputs_to_lifted_tensor_constants}
    nodes = []
    for node in program.graph.nodes:
        if node.op == "placeholder":
            is_cache = any(word in node.name for word in _CACHE_NAMES)
            kind = PARAMETER if node.name in parameters else CACHE if is_cache else INPUT
            nodes.append(TraceNode(node.name, kind, (), _shape(node)))
        elif node.op in ("call_function", "get_attr"):
            inputs = tuple(source.name for source in node.all_input_nodes)
            stack = list(node.meta.get("nn_module_stack", {}).values())
            nodes.append(TraceNode(node.name, _op(node), inputs, _shape(node), str(stack[-1][0]) if stack else ""))
    return Trace(tuple(nodes))


def _op(node: "torch.fx.Node") -> str:
    """Return the bare name of an operation: ``aten._grouped_mm.default`` is ``grouped_mm``."""
    if node.op == "get_attr":
        return PARAMETER
    words = str(node.target).split(".")
    name = words[1] if len(words) > 2 else words[-1]
    return name.removeprefix("_").removesuffix("_fallback")


def _shape(node: "torch.fx.Node") -> tuple[int, ...]:
    value = node.meta.get("val")
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return tuple(int(extent) for extent in getattr(value, "shape", ()))
