"""What is asked on the command line, and what it says of mistakes."""

import pytest

from dfcompile.dfmodel_backend import load_system
from dfcompile.errors import UserError
from dfcompile.exploration import Objective
from dfcompile.exploration.asked import Machine, figures_of
from dfcompile.options import ExploreOptions, read_options
from dfcompile.options.commands import OBJECTIVES

ASKED = {"model": "m.onnx", "pes": 4, "on_chip_memory": 256}


def test_objectives() -> None:
    asked = read_options(ExploreOptions, {**ASKED, "objective": "io, makespan"})

    assert tuple(map(Objective, asked.objective)) == (Objective.IO, Objective.MAKESPAN)
    assert tuple(map(Objective, OBJECTIVES)) == tuple(Objective)


@pytest.mark.parametrize(
    ("text", "message"), [("time", r"^--objective 'time': unknown"), ("io,io", r"^--objective: io is given twice")]
)
def test_no_objectives(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_options(ExploreOptions, {**ASKED, "objective": text})


def test_memory_that_takes_longer_makes_the_makespan() -> None:
    machine = Machine(64, 256 * 1024, load_system(None).one_chip.with_cores(64))
    free = Machine(64, 256 * 1024, load_system("contention-free").one_chip.with_cores(64))

    assert machine.makespan_cycles(2_000, 600_000) == 2_000  # 300 bytes a cycle
    assert machine.makespan_cycles(2_000, 600_001) == 2_001
    assert figures_of((Objective.MAKESPAN, Objective.IO), machine, 2_000, 900_000) == (3_000, 900_000)
    assert free.makespan_cycles(2_000, 10**15) == 2_000


def test_figures_of_a_machine() -> None:
    machine = Machine(64, 256 * 1024, load_system(None).one_chip.with_cores(64))
    makespan, io, area, energy, cost = figures_of(tuple(Objective), machine, 2_000, 30)

    assert (makespan, io, area) == (2_000, 30, 0.5 * 256 + 64)
    # sn30 per multiply-adder, DRAM of 300 GB/s [ko24]
    assert energy == pytest.approx((64 * 0.001809514141845703 + 300 * 0.16248) * 2e-6)
    assert cost == pytest.approx(64 * 0.06722920829264324 + 300)
