"""Of parametric expansions those values are looked at that suit the processing elements."""

import numpy as np
import pytest

from dfcompile.choosing.candidate import granularities, space_of
from dfcompile.choosing.scoring import QUICK
from dfcompile.expansion_names import base_name
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives
from dfcompile.options import Effort
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from tests.onnx_text import program_from_text
from tests.unit.choosing.automatic_choices import TABLE, automatic

SUM = "g (float[1,4096] x) => (float[1,1] y) { y = ReduceSum(x) }"
PRODUCT = "g (float[1,256] x) => (float[1,64] z) { y = MatMul(x, w) z = Relu(y) }"


def product() -> Program:
    return program_from_text(PRODUCT, w=np.ones((256, 64), np.float32))


@pytest.mark.parametrize(
    ("program", "pes", "most"),
    [
        (program_from_text(SUM), 16, 4096 // 16 + 2),
        (program_from_text(SUM), 256, 4096 // 256 + 4),
        (product(), 256, 256 * 64 // 256 + 2),
    ],
)
def test_sums_are_shared_by_all_elements(program: Program, pes: int, most: int) -> None:
    options = ScheduleOptions(pes, "best", effort=Effort.QUICK)

    score = replace(automatic(program), limits=QUICK).on(options).score

    assert score is not None
    assert score[0] <= most


@pytest.mark.parametrize(
    ("pes", "names"),
    [
        (4, set()),  # the results are enough tasks
        (32, {"split-k{parts=2}"}),  # for 4 P; P are there
        (256, {"split-k{parts=4}", "split-k{parts=16}"}),
        (4096, {"split-k{parts=64}", "split-k{parts=128}"}),  # two elements in each part
    ],
)
def test_parts_give_a_task_for_each_piece(pes: int, names: set[str]) -> None:
    space = space_of(known_alternatives(product(), TABLE), TABLE, (), granularities(pes), pes)

    assert {name for name in space.canonical["MatMul"] if base_name(name) != name} == names
    uniform = {choice.name for each in space.uniform() for choice in each.choices}
    assert uniform == {"columns", "ip", "lmv", "mv", "op", "rows"}
