"""Origins: a short, stable name for each node of the user's model."""

import ast
import re
from collections import Counter

import onnx

from dfcompile.frontend.onnx.draft import Draft, copied
from dfcompile.frontend.onnx.free_name import free_name

_SCOPES_KEY = "pkg.torch.onnx.name_scopes"
_CONTRACTIONS = frozenset(["Conv", "ConvTranspose", "Gemm", "MatMul"])


def name_nodes(draft: Draft) -> Draft:
    """Name every node by the user's operator it came from, and drop the metadata that told so.

    The first rule that applies gives the name:

    1. A Conv, ConvTranspose, Gemm or MatMul that alone uses a parameter ``M.weight`` is ``M``, as PyTorch names its
       modules (a convolution keeps its name if a batch normalisation was folded into it).
    2. A node that PyTorch's exporter says comes from module ``M`` is ``M`` if it is all that there is of the module;
       otherwise ``M.softmax``, after its operator type (``softmax`` for code outside of any inner module).
    3. A named node keeps its name, with ``/`` turned into ``.``, and blanks, signs and what is not seen into ``_``
       (letters of every script stay); but names that PyTorch's exporter makes up from the operator type and a count
       (``node_Split_579``) do not count as names.
    4. Any other node is ``Conv_0``: its operator type and how many nodes of it came before.

    A name that several nodes have is numbered in the model's order: ``relu``, ``relu_1``, ``relu_2``.
    """
    nodes = tuple(draft.proto.graph.node)
    uses = Counter(name for node in nodes for name in node.input)
    modules = [_module(node) for node in nodes]
    members = Counter(modules)
    split = [module.split(".") for module in modules if module]
    inner = frozenset(".".join(parts[:end]) for parts in split for end in range(1, len(parts)))
    seen: Counter[str] = Counter()
    found = []
    for node, module in zip(nodes, modules, strict=True):
        names = node.input if node.op_type in _CONTRACTIONS else ()
        owned = (name for name in names if name in draft.constants and name.endswith(".weight") and uses[name] == 1)
        candidate = next(owned, "").removesuffix(".weight")
        if not candidate and module is not None:
            alone = module and members[module] == 1 and module not in inner
            candidate = module if alone else ".".join(filter(None, [module, node.op_type.lower()]))
        found.append(_cleaned(candidate) or _given_name(node) or f"{node.op_type}_{seen[node.op_type]}")
        seen[node.op_type] += 1
    candidates, named = tuple(found), list[onnx.NodeProto]()
    taken, given, counts = set(candidates), set[str](), dict[str, int]()
    for node, candidate in zip(nodes, candidates, strict=True):
        name = free_name(candidate, taken, counts) if candidate in given else candidate
        given.add(candidate)
        named.append(copied(node, name=name))
        named[-1].ClearField("doc_string")
        named[-1].ClearField("metadata_props")
    return draft.replaced(named)


def _module(node: onnx.NodeProto) -> str | None:
    """Return the dotted path of the module, empty for the outermost one, None if the node does not tell."""
    for entry in node.metadata_props:
        if entry.key == _SCOPES_KEY:
            try:
                scopes = ast.literal_eval(entry.value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two: nested too deeply
                return None
            # The last scope is the call itself, those before it are the modules around it, each a full path.
            if isinstance(scopes, list) and len(scopes) > 1 and isinstance(scopes[-2], str):
                return scopes[-2]
    return None


def _given_name(node: onnx.NodeProto) -> str:
    return "" if re.fullmatch(rf"node_{re.escape(node.op_type)}(_\d+)?", node.name) else _cleaned(node.name)


def _cleaned(name: str) -> str:
    dotted = re.sub(r"[/:.]+", ".", name).strip(".")
    if dotted.isascii():
        return re.sub(r"[^0-9A-Za-z_.\-]+", "_", dotted)
    # A name of another script stays readable; what is not seen, and ASCII that files and shells read, does not stay.
    return re.sub("\0+", "_", "".join(char if _is_plain(char) else "\0" for char in dotted))


def _is_plain(char: str) -> bool:
    return (char.isalnum() or char in "_.-") if char.isascii() else char.isprintable()
