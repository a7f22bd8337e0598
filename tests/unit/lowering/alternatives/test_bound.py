"""The bound over the known expansions: never above any schedule of any lowering, and close to the best one."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.driver import explore
from dfcompile.errors import UserError
from dfcompile.frontend import Program
from dfcompile.lowering import (
    Choice,
    known_alternatives,
    lower_to_canonical,
    lower_to_maps,
    registered_expansions,
)
from dfcompile.lowering.alternatives.bound import expansion_bound, expansion_hints
from dfcompile.lowering.expressions import affine
from dfcompile.options import Volumes
from dfcompile.report.summary import summarize
from dfcompile.scheduler import ScheduleOptions, schedule
from tests.asked_options import asked
from tests.examples import examples
from tests.onnx_text import model_from_text, program_from_text

TABLE = registered_expansions()
PRODUCTS = ["mv", "op", "lmv", "ip", "columns", "rows"]
small = st.integers(1, 4)


def makespan(program: Program, choices: list[Choice], pes: int, partition: str, *, barrier: bool | None = None) -> int:
    maps = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)
    dag = extract(maps.sdfg)
    found = schedule(dag, ScheduleOptions(pes=pes, partition=partition, barrier=barrier))
    return max(found.last_out.tolist(), default=0)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A convolution, perhaps grouped, then what networks do with its result, then perhaps a product."""
    group, rows, channels = draw(st.sampled_from([1, 1, 2, 3])), draw(small), draw(st.integers(1, 3))
    kernel, size, pad = draw(st.integers(1, 3)), draw(st.integers(3, 6)), draw(st.integers(0, 1))
    filters, count = group * rows, size + 2 * pad - kernel + 1
    weights = {
        "w": np.ones((filters, channels, kernel, kernel), np.float32),
        "v": np.ones((count, draw(small)), np.float32),
    }
    steps = [f"y = Conv<group={group}, pads=[{pad},{pad},{pad},{pad}]>(x, w)"]
    last = "y"
    for number, step in enumerate(draw(st.lists(st.sampled_from(STEPS), max_size=3))):
        steps.append(f"z{number} = {step.format(last)}")
        last = f"z{number}"
    columns = count
    if draw(st.booleans()):
        steps.append(f"m = MatMul({last}, v)")
        last, columns = "m", weights["v"].shape[1]
    else:
        weights.pop("v")
    text = " ".join(steps)
    shape = f"[1,{filters},{count},{columns}]"
    return program_from_text(
        f"g (float[1,{group * channels},{size},{size}] x) => (float{shape} {last}) {{ {text} }}", **weights
    )


STEPS = ["Relu({0})", "Softmax<axis=3>({0})", "Softmax<axis=1>({0})", "Add({0}, {0})", "Sigmoid({0})"]


@given(program=programs(), conv=st.sampled_from(["im2col", "direct"]), matmul=st.sampled_from(PRODUCTS),
       pes=st.sampled_from([1, 2, 3, 5, 16, 300]), partition=st.sampled_from(["sb-rlx", "sb-lts", "best"]))  # fmt: skip
@examples(10)
def test_no_schedule_of_any_lowering_is_below_the_bound(
    program: Program, conv: str, matmul: str, pes: int, partition: str
) -> None:
    bound = expansion_bound(known_alternatives(program, TABLE), pes)

    assert bound.cycles > 0
    assert bound.cycles <= makespan(program, [Choice("Conv", conv), Choice("MatMul", matmul)], pes, partition)


def depthwise(channels: int = 8, size: int = 10) -> Program:
    return program_from_text(
        f"g (float[1,{channels},{size},{size}] x) => (float[1,{channels},{size - 2},{size - 2}] y) "
        f"{{ y = Conv<group={channels}>(x, w) }}",
        w=np.ones((channels, 1, 3, 3), np.float32),
    )


def test_bound_of_one_convolution_is_that_of_its_best_expansion() -> None:
    bound = expansion_bound(known_alternatives(depthwise(), TABLE), 64)

    assert bound.cycles == 8 * 9  # one task per window and channel, eight on each element; nothing else
    choices = [Choice("Conv", "direct"), Choice("Convolution", "windows")]
    assert bound.cycles == makespan(depthwise(), choices, 64, "sb-rlx")


def test_hint_names_the_better_expansion_and_only_a_better_one() -> None:
    program = depthwise()
    bound = expansion_bound(known_alternatives(program, TABLE), 64)
    hints = {}
    for name, tasks in (("im2col", "filters"), ("direct", "filters"), ("direct", "windows")):
        choices = [Choice("Conv", name), Choice("Convolution", tasks)]
        lowered = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)
        hints[name, tasks] = expansion_hints(bound, lowered.chosen, makespan(program, choices, 64, "sb-rlx"))

    (hint,) = hints["im2col", "filters"]
    assert (hint.op_type, hint.name, hint.origins, hint.is_for_all) == ("Conv", "direct", ("Conv_0",), True)
    assert hint.hinted_cycles == 8 * 9 < hint.chosen_cycles
    (hint,) = hints["direct", "filters"]
    assert (hint.op_type, hint.name, hint.chosen_cycles) == ("Convolution", "windows", 8 * 8 * 9)
    assert hints["direct", "windows"] == ()


def test_hint_is_for_those_operators_alone_that_gain() -> None:
    program = program_from_text(
        "g (float[1,8,12,12] x) => (float[1,4,10,10] z) { y = Conv<group=8>(x, w) z = Conv(y, v) }",
        w=np.ones((8, 1, 3, 3), np.float32),
        v=np.ones((4, 8, 1, 1), np.float32),
    )
    choices = [Choice("Conv", "im2col", "Conv_0"), Choice("Conv", "direct", "Conv_1")]
    lowered = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)
    bound = expansion_bound(known_alternatives(program, TABLE), 64)

    hint = expansion_hints(bound, lowered.chosen, 1000)[0]

    assert (hint.origins, hint.is_for_all) == (("Conv_0",), False)


@given(st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9)), st.integers(-9, 9), st.integers(-3, 3))
def test_affine_index_is_read_as_python_computes_it(terms: dict[str, int], constant: int, factor: int) -> None:
    text = f"{factor}*({' + '.join([*(f'{by}*{name}' for name, by in terms.items()), str(constant)])}) - a"
    found = affine(text)
    places = dict(zip("abc", (2, 3, 5), strict=True))

    assert sum(by * (places[name] if name else 1) for name, by in found.items()) == eval(text, {}, places)


@pytest.fixture
def depthwise_file(tmp_path: Path) -> Path:
    file = tmp_path / "dw.onnx"
    text = "g (float[1,8,12,12] x) => (float[1,8,10,10] y) { y = Conv<group=8>(x, w) }"
    onnx.save(model_from_text(text, w=np.ones((8, 1, 3, 3), np.float32)), file)
    return file


def test_report_states_the_gap_over_expansions_and_hints(depthwise_file: Path) -> None:
    report = summarize(explore(asked(depthwise_file, (80,), "Conv=im2col,direct", "Convolution=windows")))
    im2col, direct = (result.over_expansions for result in report.results)

    assert im2col is not None
    assert direct is not None
    assert direct.lower_bound_cycles == im2col.lower_bound_cycles
    assert direct.gap == 0
    assert not direct.hints
    assert im2col.gap == Fraction(report.results[0].schedule.makespan_cycles or 0, direct.lower_bound_cycles) - 1 > 5
    assert [hint.expand for hint in im2col.hints] == [("Conv=direct",)]


@pytest.mark.parametrize(
    "changed", [{"passes": ("fuse-elementwise",)}, {"volumes": Volumes.ARRAY}, {"granularity": "split=4"}]
)
def test_no_bound_over_expansions_is_claimed_where_options_change_the_tasks(
    depthwise_file: Path, changed: dict[str, object]
) -> None:
    (result,) = summarize(explore(asked(depthwise_file, (64,), **changed))).results

    assert result.over_expansions is None


def test_combinations_with_one_effect_are_one_result(depthwise_file: Path) -> None:
    found = explore(asked(depthwise_file, (64,), "Conv=direct,im2col", "MatMul=mv,op"))

    assert [dict(point.variant.expansions) for point in found.points] == [
        {"Conv": "direct", "Convolution": "filters"},
        {"Conv": "im2col", "MatMul": "mv"},
        {"Conv": "im2col", "MatMul": "op"},
    ]


@pytest.mark.parametrize("index", ["i // 2", "i * j", "f(i)"])
def test_index_that_is_not_affine_is_named(index: str) -> None:
    with pytest.raises(UserError, match="against an affine function"):
        affine(index)
