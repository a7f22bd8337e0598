"""No schedule and no mapping moves less than is proved, and what operators move adds up."""

from pathlib import Path

import pytest

from dfcompile.api.compile_model import compile_model

ROOT = Path(__file__).parents[2]
MODELS = (
    ("examples/lenet/model.py", "16,128", ["MatMul=op,lmv"]),
    ("benchmarks/models/encoder_layer.py", "64", ["MatMul=mv,op"]),
    ("benchmarks/models/gpt2_block.py", "64", ["MatMul=op"]),
    ("benchmarks/models/resnet_18.py", "128", ["Conv=direct"]),
)


@pytest.mark.parametrize(("model", "pes", "expand"), MODELS, ids=[Path(model).stem for model, *_ in MODELS])
def test_nothing_moves_less_than_is_proved(model: str, pes: str, expand: list[str]) -> None:
    results = compile_model(ROOT / model, pes=pes, expand=expand).report.results

    assert results
    for result in results:
        traffic = result.traffic
        assert traffic is not None
        assert result.mapping is not None
        assert traffic.moved_bytes == result.mapping.dram_bytes
        assert traffic.moved_bytes >= traffic.proved_bytes > 0
        assert result.schedule.io_bytes >= traffic.proved_bytes
        assert traffic.least_bytes is not None
        assert traffic.least_bytes >= traffic.proved_bytes
        assert sum(op.moved_bytes for op in traffic.operators) == traffic.moved_bytes
        assert sum(op.least_bytes for op in traffic.operators) == traffic.least_bytes
        assert sum(op.excess_bytes for op in traffic.operators) == traffic.moved_bytes - traffic.least_bytes
