"""Domains: a draft calls an operator of another domain than ONNX's by its full name, such as com.microsoft.Gelu."""

from collections.abc import Iterable

import onnx

from dfcompile.frontend.onnx.contributed import CONTRIBUTED
from dfcompile.frontend.onnx.contributed_operator import DOMAIN
from dfcompile.frontend.onnx.fused_activations import unfused
from dfcompile.frontend.onnx.schemas import OWN_DOMAINS, register_contributed

# What onnxruntime has in the domain of ONNX, in operator sets before the one where ONNX has it as well, if ever.
_MISPLACED = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 2**31}


def add_nodes(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Put nodes in a model, in place: contributed operators by their full name, fused ones in their parts.

    So no operator of one domain is taken for that of the same name in another one. A fused activation becomes nodes of
    ONNX itself.

    Raises:
        UnsupportedOpError: a fused node has an activation that is not known.
    """
    opset = next((entry.version for entry in model.opset_import if entry.domain in OWN_DOMAINS), 1)
    for node in nodes:
        is_misplaced = node.domain in OWN_DOMAINS and opset < _MISPLACED.get(node.op_type, 0)
        full_name = f"{DOMAIN}.{node.op_type}"
        if (node.domain == DOMAIN or is_misplaced) and full_name in CONTRIBUTED:
            register_contributed()
            model.graph.node.append(node)
            model.graph.node[-1].op_type = full_name
            model.graph.node[-1].domain = DOMAIN
            if is_misplaced and all(entry.domain != DOMAIN for entry in model.opset_import):
                model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
        else:
            model.graph.node.extend(unfused(node, opset))
