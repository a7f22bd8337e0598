"""Of the smallest models on tight machines no mapping of few tasks is faster than the default one by more than 2 %.

All lowerings, pieces, orders, streams, configurations and all that SRAM may hold are tried; `make fuzz` draws others.
"""

from pathlib import Path

import pytest

import dfcompile as df
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import DrawnMachine
from tests.fuzz.order_cases import drawn_smallest_model, judge_orders
from tests.fuzz.outcome import Verdict
from tests.whole import every_order
from tests.whole.brute_force import tasks_of
from tests.whole.every_holding import Looks, TooManyError
from tests.whole.every_order import faster_mapping, least_moved


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("seed", ["o38b:7", "o38b:17", "o38b:19", "o38b:47", "o38b:48", "o38b:54"])
def test_no_order_of_few_tasks_is_faster(seed: str) -> None:
    draw = Draw(seed)
    case = drawn_smallest_model(draw)
    Path("case.onnx").write_bytes(case.content)
    outcome = judge_orders(Path("case.onnx"), case, draw, lambda _: None)

    assert outcome.verdict is Verdict.ACCEPTED, outcome.detail or outcome.cause


@pytest.mark.parametrize("seed", ["s38:4", "s38:5", "s38:18", "s38:37"])
def test_mappings_of_named_lowerings_are_among_those_that_are_tried(seed: str) -> None:
    draw, machine = Draw(seed), DrawnMachine(pes=2, sram_bytes=24, gb_per_s=0.5)
    Path("case.onnx").write_bytes(drawn_smallest_model(draw).content)
    asked = {"expand": "published", "granularity": "pieces=2"}
    (point,) = df.compile("case.onnx", pes=[2], system=machine.file(), **asked).exploration.points
    dag, taken_s = point.attained.dag, point.attained.time_s
    model = tasks_of(dag, point.system)
    found = faster_mapping(model, taken_s * 1.001, Looks(300_000))

    assert found is not None
    assert found.time_s <= taken_s
    assert least_moved(model) <= min(moved(found), moved(point.attained))
    check_task_mapping(dag, point.system, model.overlap, found)


@pytest.mark.parametrize("seed", ["s38:4", "s38:37"])
def test_tasks_that_may_change_places_are_tried_in_one_order(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, machine = Draw(seed), DrawnMachine(pes=2, sram_bytes=24, gb_per_s=0.5)
    Path("case.onnx").write_bytes(drawn_smallest_model(draw).content)
    (point,) = df.compile("case.onnx", pes=[2], system=machine.file(), granularity="pieces=2").exploration.points
    model, time_s = tasks_of(point.attained.dag, point.system), point.attained.time_s * 1.001
    few, many = Looks(300_000), Looks(300_000)
    found = faster_mapping(model, time_s, few)
    monkeypatch.setattr(every_order, "tasks_alike", lambda *_: {})
    among_all = faster_mapping(model, time_s, many)

    assert few.left > many.left
    assert found is not None
    assert among_all is not None
    assert found.time_s == among_all.time_s


def moved(mapping: TaskMapping) -> int:
    return sum(each.dram_bytes for each in mapping.configurations)


def test_too_many_orders_are_not_tried() -> None:
    machine = DrawnMachine(pes=2, sram_bytes=24, gb_per_s=0.5)
    Path("case.onnx").write_bytes(drawn_smallest_model(Draw("s38:18")).content)
    (point,) = df.compile("case.onnx", pes=[2], system=machine.file(), expand="published").exploration.points

    with pytest.raises(TooManyError):
        faster_mapping(tasks_of(point.attained.dag, point.system), point.attained.time_s, Looks(3))
