"""The automatic choice against uniform ones, each lowered and scheduled: never worse, better where none wins."""

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile as df
from dfcompile.choosing.candidate import granularities
from dfcompile.driver import explore
from dfcompile.frontend import Program
from dfcompile.options import Aim, Choice, Effort, Options
from dfcompile.report.summary import summarize
from dfcompile.scheduler import ScheduleOptions
from tests.asked_options import asked
from tests.examples import examples
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import DrawnMachine
from tests.fuzz.slower_cases import drawn_small_model
from tests.onnx_text import model_from_text
from tests.unit.choosing.automatic_choices import automatic, convolutions, least_makespan
from tests.unit.choosing.random_programs import programs


def uniform(program: Program, options: ScheduleOptions) -> int:
    """Return the least makespan of one expansion per type and one granularity, each lowered and scheduled."""
    return min(
        least_makespan(program, (Choice("Conv", conv), Choice("MatMul", matmul)), granularities(options.pes), options)
        for conv, matmul in product(("im2col", "direct"), ("mv", "op", "lmv", "ip", "columns", "rows"))
    )


def chosen(program: Program, options: ScheduleOptions) -> int:
    """Return the makespan of the automatic choice, lowered and scheduled by itself."""
    found = automatic(program).on(options).sketch.candidate
    return least_makespan(program, found.choices, (found.granularity,), options)


@given(programs(), st.sampled_from([1, 2, 5, 16]), st.sampled_from(["best", "sb-rlx"]))
@examples(8)
def test_no_uniform_choice_is_better(program: Program, pes: int, partition: str) -> None:
    options = ScheduleOptions(pes, partition, effort=Effort.QUICK)

    assert chosen(program, options) <= uniform(program, options)


def test_no_single_expansion_wins() -> None:
    options = ScheduleOptions(64, "best", effort=Effort.QUICK)

    assert chosen(convolutions(), options) < uniform(convolutions(), options)


def figures(options: Options) -> dict[Aim, float]:
    """Return what each objective counts."""
    (result,) = summarize(explore(options)).results
    assert result.mapping is not None
    assert result.schedule.io_bytes is not None
    return {
        Aim.TIME: result.mapping.time_s,
        Aim.IO: result.schedule.io_bytes,
        Aim.ENERGY: result.mapping.energy_j,
        Aim.COST: result.mapping.cost_usd,
    }


def test_no_uniform_choice_is_better_by_another_objective(tmp_path: Path) -> None:
    file = tmp_path / "two.onnx"
    text = "g (float[1,10] x) => (float[1,3] z) { y = MatMul(x, v) r = Relu(y) z = MatMul(r, w) }"
    onnx.save(model_from_text(text, v=np.ones((10, 12), np.float32), w=np.ones((12, 3), np.float32)), file)
    found = {aim: figures(asked(file, (8,), "auto", objective=aim))[aim] for aim in (Aim.IO, Aim.ENERGY, Aim.COST)}

    for name, granularity in product(("mv", "op", "lmv", "ip", "columns", "rows"), (None, "pieces=8")):
        other = figures(asked(file, (8,), f"MatMul={name}", granularity=granularity))
        assert all(figure <= other[aim] for aim, figure in found.items())


def test_no_limit_of_fifos_is_better(tmp_path: Path) -> None:
    file, machine = tmp_path / "attention.onnx", tmp_path / "machine.yaml"
    text = """g (float[2,3,2] x) => (float[2,3,2] y) {
        t = Transpose<perm=[0,2,1]>(x) p = MatMul(x, t) s = Softmax(p) m = MatMul(s, x) y = Add(m, x)
    }"""
    onnx.save(model_from_text(text), file)
    machine.write_text(
        "name: drawn\naccelerator: {cores: 1, lanes_per_core: 1, stages_per_core: 1, frequency_ghz: 1.0, "
        "sram_bytes: 40, price_usd_per_core: 1.0, power_w_per_core: 1.0}\n"
        "dram: {bandwidth_gb_per_s: 300.0, capacity_bytes: 1.0e12, price_usd_per_gb_per_s: 1.0, "
        "power_w_per_gb_per_s: 1.0}\n"
    )
    # Several choices take 168 cycles; of the one with the smallest FIFOs no single change takes less.
    times = [figures(asked(file, (1,), "quick", system=machine, max_fifo=most))[Aim.TIME] for most in (None, 2)]

    assert times[0] <= times[1] <= 156e-9


def time_ns(model: onnx.ModelProto, machine: DrawnMachine) -> float:
    """Return what a model takes on a machine by default, in nanoseconds."""
    onnx.save(model, "case.onnx")
    (result,) = df.compile(Path("case.onnx"), pes=[machine.pes], system=machine.file()).report.results
    assert result.mapping is not None
    return result.mapping.time_s * 1e9


def test_choices_for_fewer_elements_are_looked_at_where_a_model_waits_for_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "g (float[8,16] x) => (float[8,24] y) { p = MatMul(x, w) y = Softmax(p) }"
    model = model_from_text(text, w=np.ones((16, 24), np.float32))

    # What is best by estimates for 6 elements takes 2,464 ns.
    assert time_ns(model, DrawnMachine(pes=6, sram_bytes=240, gb_per_s=4.0)) <= 2168.1


@pytest.mark.parametrize(
    ("seed", "machine", "most_ns"),
    [
        # Gangs of some hundred tasks: lists take 20 ns, as do gangs of the partitioner's rivals with other times.
        ("e41:44", DrawnMachine(pes=32, sram_bytes=1280, gb_per_s=300.0), 19.1),
        # A list that begins with smaller FIFOs: the one that is made without a limit takes 134 ns.
        ("e45:1", DrawnMachine(pes=16, sram_bytes=16_000, gb_per_s=64.0), 132.1),
        # 48 pieces of the expansions that are found in 24: changes of single operators end at 631.6 ns.
        ("e46:93", DrawnMachine(pes=2, sram_bytes=16, gb_per_s=10.0), 612.5),
        # What is chosen for 4 elements and is not the best by its estimate there; else 34,312 ns.
        ("e49:14", DrawnMachine(pes=6, sram_bytes=240, gb_per_s=0.5), 30_025),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_few_ways_find_is_found(
    seed: str, machine: DrawnMachine, most_ns: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = onnx.load_from_string(drawn_small_model(Draw(seed)).content)

    assert time_ns(model, machine) <= most_ns
