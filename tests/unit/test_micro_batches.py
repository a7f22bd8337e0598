"""Parts of a model: which sizes are looked at, and what a run in parts says."""

from collections.abc import Callable
from dataclasses import astuple
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.audit.reports import audit_report
from dfcompile.driver import Exploration, explore
from dfcompile.errors import UserError, VerificationError
from dfcompile.micro_batches import FastestMicroBatches, groups_of, sizes_of
from dfcompile.options import MicroBatches, Options, read_options
from dfcompile.records import replace
from dfcompile.report.screen import saved_choice
from dfcompile.report.summary import summarize
from tests.asked_options import asked
from tests.onnx_text import model_from_text

DIMS = {"N": 64}
PUSCH = Path(__file__).parents[2] / "examples" / "pusch_mimo" / "mimo.py"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two products of as many matrices as are asked for."""
    graph = "g (float[N,8,8] x, float[N,8,8] z) => (float[N,8,8] y) { a = MatMul(x, z) b = Relu(a) y = MatMul(b, z) }"
    file = tmp_path_factory.mktemp("models") / "chain.onnx"
    onnx.save(model_from_text(graph), file)
    return file


def _in_micro_batches(model: Path, said: str = "N=16", **more: object) -> Exploration:
    return explore(asked(model, (4,), "quick", dims=DIMS, micro_batches=said, **more))


@pytest.mark.parametrize("extent", [1, 2, 7, 36, 97, 3276])
def test_sizes_divide_the_extent_and_grow(extent: int) -> None:
    sizes = list(sizes_of(extent))

    assert all(extent % size == 0 and size < extent for size in sizes)
    assert all(larger >= 2 * size for size, larger in pairwise(sizes))
    assert sizes[:1] == [1] * (extent > 1)


@pytest.mark.parametrize(("count", "pes"), [(1, 8), (18, 1024), (1638, 128), (7, 3)])
def test_groups_are_the_fewest_for_their_rounds(count: int, pes: int) -> None:
    for groups in groups_of(count, pes):
        rounds = -(-count // groups)
        assert 1 <= groups <= min(count, pes)
        assert groups == 1 or (groups - 1) * rounds < count


def _found(whole_s: float, floor_s: float, times: Callable[[int, int, float], float]) -> tuple[int, int] | None:
    return FastestMicroBatches(64, lambda size: groups_of(64 // size, 16), (whole_s, floor_s), times).search()


def test_parts_that_take_least_time_are_found_step_by_step() -> None:
    def time(size: int, groups: int, _: float) -> float:
        return inf if size == 1 else 10 + abs(size - 8) + abs(groups - 4)

    assert _found(100.0, 1.0, time) == (8, 4)
    assert _found(9.0, 1.0, time) is None  # the whole is faster


def test_nothing_is_looked_at_where_little_can_be_gained() -> None:
    looked_at = []

    def time(size: int, groups: int, _: float) -> float:
        looked_at.append((size, groups))
        return 10.2

    assert _found(10.9, 10.0, time) is None
    assert not looked_at
    assert _found(20.0, 10.0, time) == (1, 1)
    assert looked_at == [(1, 1)]


def test_totals_are_those_of_all_parts_and_the_rest_is_of_one(chain: Path) -> None:
    found = _in_micro_batches(chain)
    one = explore(asked(chain, (4,), "quick", dims={"N": 16}, micro_batches="whole"))
    report, alone = summarize(found), summarize(one)
    audit_report(report, found)
    (result,), (part,) = report.results, alone.results
    assert result.mapping is not None
    assert part.mapping is not None
    assert result.traffic is not None

    assert result.micro_batches is not None
    assert (result.micro_batches.dimension, result.micro_batches.size, result.micro_batches.count) == ("N", 16, 4)
    assert (result.schedule, result.mapping.kernels) == (part.schedule, part.mapping.kernels)
    assert result.makespan_cycles == 4 * (part.makespan_cycles or 0)
    assert result.mapping.dram_bytes == result.traffic.moved_bytes == 4 * part.mapping.dram_bytes
    assert result.mapping.time_s == pytest.approx(4 * part.mapping.time_s)
    assert result.traffic.proved_bytes == 3 * 64 * 8 * 8 * 4  # of the whole
    assert any(said.value.startswith("4 of N=16, 1 at once") for said in report.assumptions)
    # At least work and what is asked for, whatever order all parts have.
    work = 4 * part.schedule.total_work_cycles / 4 / 1e9
    assert work <= result.mapping.bound_time_s <= result.mapping.time_s * (1 + 1e-9)


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_groups_share_the_chip(chain: Path, groups: int) -> None:
    """Of seven elements each of three groups has two, and one is in none; of four micro-batches one runs alone."""
    found = explore(asked(chain, (7,), "quick", dims=DIMS, micro_batches=f"N=16/{groups}"))
    report = summarize(found)
    audit_report(report, found)
    (point,), (result,) = found.points, report.results
    assert result.mapping is not None
    mapping, parts = result.mapping, result.mapping.parts

    assert (result.pes, point.pes) == (7, 7 // groups)
    assert point.system.accelerator.sram_bytes * groups <= point.whole_system.accelerator.sram_bytes
    assert point.system.dram_gb_per_s * groups == pytest.approx(point.whole_system.dram_gb_per_s)
    rounds = -(-4 // groups)
    assert mapping.time_s == pytest.approx(rounds * mapping.configurations[0].time_s)
    assert parts.work_s == pytest.approx(4 * result.schedule.total_work_cycles / 7 / 1e9)
    assert sum(astuple(parts)) == pytest.approx(mapping.time_s)
    assert mapping.cost_usd == pytest.approx(
        explore(asked(chain, (7,), "quick", dims=DIMS)).points[0].attained.cost_usd
    )


def test_chips_exchange_in_every_part(tmp_path: Path) -> None:
    """Each of two parts is shared by two chips, which send one another what the sum needs."""
    graph = "g (float[N,4] x) => (float[N,4] y) { a = MatMul(x, w) y = Add(a, x) }"
    onnx.save(model_from_text(graph, w=np.ones((4, 4), np.float32)), tmp_path / "sum.onnx")
    machine = {"system": "h100", "chips": (4,)}
    found = explore(asked(tmp_path / "sum.onnx", (16,), "quick", dims={"N": 4}, micro_batches="N=2", **machine))
    report = summarize(found)
    audit_report(report, found)
    (result,) = report.results
    assert result.mapping is not None

    assert result.mapping.exchanges
    assert result.mapping.moved_bytes == 2 * sum(each.moved_bytes for each in result.mapping.exchanges)


def test_a_part_of_all_indices_is_the_whole(chain: Path) -> None:
    assert _in_micro_batches(chain, "N=64").points[0].micro_batches is None


def test_choice_in_parts_is_kept(chain: Path, tmp_path: Path) -> None:
    found = _in_micro_batches(chain, "N=16/2")
    report = summarize(found)
    (tmp_path / "choice.txt").write_text(saved_choice(report))

    again = explore(
        read_options(Options, {"model": chain, "pes": (4,), "choice": tmp_path / "choice.txt", "dims": DIMS})
    )

    assert again.points[0].attained.time_s == found.points[0].attained.time_s
    assert again.points[0].micro_batches == found.points[0].micro_batches
    audit_report(summarize(again), again)


def test_the_audit_refuses_totals_of_a_part(chain: Path) -> None:
    found = _in_micro_batches(chain)
    report = summarize(found)
    (result,) = report.results
    assert result.mapping is not None
    once = replace(result.mapping, time_s=result.mapping.time_s / 4)

    with pytest.raises(VerificationError, match="makespan_cycles"):
        audit_report(replace(report, results=(replace(result, mapping=once),)), found)
    with pytest.raises(VerificationError, match="micro_batches"):
        audit_report(replace(report, results=(replace(result, micro_batches=None),)), found)
    (point,) = found.points
    assert point.micro_batches is not None
    twice = replace(point, micro_batches=replace(point.micro_batches, at_once=2))  # on the whole chip each
    with pytest.raises(VerificationError):
        audit_report(report, replace(found, points=(twice,)))


def test_parts_are_chosen_where_the_whole_takes_longer_than_it_must() -> None:
    """Of matrices that a chip holds some of: all scopes over all matrices would move every array again and again."""
    dims = {"N": 432, "R": 16, "L": 2}
    found = explore(asked(PUSCH, (64,), "quick", dims=dims))
    (point,), (result,) = found.points, summarize(found).results
    assert result.mapping is not None

    assert point.micro_batches is not None
    assert point.micro_batches.count * point.micro_batches.size == dims["N"]
    assert result.mapping.time_s <= 1.06 * result.mapping.ideal_time_s


def test_whole_is_kept_where_it_takes_little_more_than_it_must(chain: Path) -> None:
    assert _in_micro_batches(chain, "auto").points[0].micro_batches is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("N=5", "--micro-batches N=5: found 64 against a multiple of 5"),
        ("M=2", "--micro-batches M=2: found --dim N=64 against --dim M=SIZE"),
    ],
)
def test_parts_that_there_are_not_are_refused(chain: Path, said: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        _in_micro_batches(chain, said)


def test_dependent_parts_are_refused(tmp_path: Path) -> None:
    model = model_from_text("g (float[N,4] x) => (float[N,4] y) { y = Softmax<axis = 0>(x) }")
    onnx.save(model, tmp_path / "softmax.onnx")

    with pytest.raises(UserError, match="not known to be independent"):
        _in_micro_batches(tmp_path / "softmax.onnx")


def test_words_of_the_option() -> None:
    options = asked(Path("m.onnx"), (4,), "quick", micro_batches="batch=8")

    assert options.micro_batches == MicroBatches("batch", 8)
    assert str(options.micro_batches) == "batch=8"
    with pytest.raises(UserError, match="found 'some' against auto, whole or NAME=SIZE"):
        asked(Path("m.onnx"), (4,), "quick", micro_batches="some")
    with pytest.raises(UserError, match="found beside --repeat"):
        asked(Path("m.onnx"), (4,), "quick", micro_batches="batch=8", repeat=2)
