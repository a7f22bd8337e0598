"""Models that ONNX publishes as tests: what mutations start from."""

from functools import cache

from tests.fuzz.draw import Draw
from tests.fuzz.generated_models import IR_VERSION, NEWEST, ModelCase
from tests.onnx_node_cases import node_cases


def published_model(draw: Draw) -> ModelCase:
    return draw.choice(_cases())


@cache
def _cases() -> tuple[ModelCase, ...]:
    found = []
    for case in node_cases(constants=False):
        if case.feeds:
            # Newer than what onnxruntime knows; the operators are mostly as they were.
            case.model.opset_import[0].version = min(NEWEST, case.model.opset_import[0].version)
            case.model.ir_version = IR_VERSION
            found.append(ModelCase(case.model, case.feeds))
    return tuple(found)
