"""No schedule and no mapping moves less than is proved, and what operators move adds up."""

from pathlib import Path

import pytest

from dfcompile.api.compile_model import compile_model
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.io_bounds.fusion.proved_model import proved_model_bytes
from dfcompile.operator_shapes import bounded_model
from tests.examples import rounds

ROOT = Path(__file__).parents[2]
LENET, RESNET = "examples/lenet/model.py", "benchmarks/models/resnet_18.py"
ENCODER, BLOCK = "benchmarks/models/encoder_layer.py", "benchmarks/models/gpt2_block.py"
SMALL_ENCODER = "tests/models/encoder_layer.py"
# The first four in each run, all of them in a long one (`PROPERTY_EXAMPLES=20`).
MODELS = (
    (LENET, "16", ("MatMul=op",)),
    (SMALL_ENCODER, "64", ("MatMul=mv,op",)),
    (BLOCK, "64", ("MatMul=op",)),
    (RESNET, "128", ("Conv=direct",)),
    (LENET, "16,128", ("MatMul=op,lmv",)),
    (ENCODER, "64", ("MatMul=mv,op",)),
    (LENET, "1,2,3,7,64,500,2048", ("Conv=im2col",)),
    (LENET, "4,32,256", ("Conv=direct", "MatMul=mv")),
    (LENET, "8,100", ("Conv=winograd",)),
    (LENET, "8,100", ("Conv=fft",)),
    (LENET, "16,512", ("auto",)),
    (ENCODER, "1,4,16,256,1024", ("MatMul=op",)),
    (ENCODER, "2,128", ("MatMul=lmv",)),
    (ENCODER, "32,2048", ("auto",)),
    (BLOCK, "4,16", ("MatMul=mv",)),
    (BLOCK, "256,1024", ("MatMul=lmv",)),
    (BLOCK, "128", ("auto",)),
    (RESNET, "16,512", ("Conv=im2col",)),
    (RESNET, "1024", ("Conv=direct",)),
    (RESNET, "2048", ("auto",)),
)
CASES = MODELS[: rounds(8)]
OTHER_PRODUCTS = ("winograd", "fft", "auto")  # expansions that do not compute each product of a convolution


@pytest.mark.parametrize(
    ("model", "pes", "expand"), CASES, ids=[f"{Path(model).stem} {' '.join(words)}" for model, _, words in CASES]
)
def test_nothing_moves_less_than_is_proved(model: str, pes: str, expand: tuple[str, ...]) -> None:
    results = compile_model(ROOT / model, pes=pes, expand=list(expand)).report.results
    bounded = bounded_model(read_model(ROOT / model, ReadOptions()).program)

    assert results
    for result in results:
        traffic = result.traffic
        assert traffic is not None
        assert result.mapping is not None
        assert traffic.moved_bytes == result.mapping.dram_bytes
        assert traffic.moved_bytes >= traffic.proved_bytes == bounded.compulsory_bytes > 0
        assert result.schedule.io_bytes >= traffic.proved_bytes
        if traffic.buffer_bytes is not None and not any(name in word for word in expand for name in OTHER_PRODUCTS):
            assert traffic.moved_bytes >= proved_model_bytes(bounded, traffic.buffer_bytes)
        assert traffic.least_bytes is not None
        assert traffic.least_bytes >= traffic.proved_bytes
        assert sum(op.moved_bytes for op in traffic.operators) == traffic.moved_bytes
        assert sum(op.least_bytes for op in traffic.operators) == traffic.least_bytes
        assert sum(op.excess_bytes for op in traffic.operators) == traffic.moved_bytes - traffic.least_bytes
