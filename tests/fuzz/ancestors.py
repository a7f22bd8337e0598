"""The part of a model that one of its outputs depends on: what is left of a finding without the rest."""

import onnx


def only_output(content: bytes, name: str) -> bytes:
    """Return the model with one output, the nodes that it needs and what these read."""
    model = onnx.load_model_from_string(content)
    wanted, kept = {name}, []
    for node in reversed(model.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    part = onnx.ModelProto()
    part.CopyFrom(model)
    for field in ("node", "input", "output", "initializer"):
        del getattr(part.graph, field)[:]
    part.graph.node.extend(reversed(kept))
    part.graph.input.extend(value for value in model.graph.input if value.name in wanted)
    part.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in wanted)
    part.graph.output.extend(value for value in model.graph.output if value.name == name)
    return bytes(part.SerializeToString())
