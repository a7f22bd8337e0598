"""Control flow: branches, loops and sequences that a model's own constants decide, as plain operators."""

from dfcompile.frontend.normaliser.control_flow.rewriting import Rewriting
from dfcompile.frontend.normaliser.control_flow.rules import RULES
from dfcompile.frontend.onnx.draft import OWN_DOMAINS, Draft


def without_control_flow(draft: Draft) -> Draft:
    """Return the draft without branches, loops and sequences; the draft itself if it has none.

    ``y = Loop(3, "", x) <body = (i, c, v) {w = Relu(v)} -> (c, w)>`` becomes ``w = Relu(x), w_1 = Relu(w), w_2 =
    Relu(w_1)``. Conditions, numbers of iterations and positions have to depend on constants and static shapes alone.

    Raises:
        UnsupportedOpError: the model's inputs decide.
        UserError: what is unrolled is too large, or graphs do not fit their nodes.
    """
    own = {node.op_type for node in draft.proto.graph.node if node.domain in OWN_DOMAINS}
    return Rewriting(draft, RULES).run() if own.intersection(RULES) - {"Identity"} else draft
