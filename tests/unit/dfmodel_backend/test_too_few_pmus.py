"""Too few memory units: one line names kernel or configuration, what it needs, and the fewest that are enough."""

import random
import re

import pytest

from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.pmu_designs import random_design, with_pmus

ALONE = r"kernel 'k\d+': needs (\d+) PMUs alone, in \d+ tiles?, against 1 of the chip \("
TOGETHER = r"configuration \d+: needs (\d+) PMUs for 'k\d+'.*, against \d+ of the chip, and no other \d+ configurations"


def error_of(design: Design) -> str | None:
    try:
        solve_design(design, DesignOptions())
    except InfeasibleError as error:
        return str(error)
    return None


def one_tiling(rng: random.Random) -> Design:
    """Return a design of roomy cores and DRAM, with a tile size."""
    design = random_design(rng, 6)
    execution = replace(design.execution, batch=replace(design.execution.batch, tile=rng.choice([4, 12])))
    return replace(design, machine=replace(design.machine, cores=9, dram_bytes=0.0), execution=execution)


def test_the_named_number_of_pmus_is_enough_and_one_less_is_not() -> None:
    alone = together = 0
    for seed in range(15):
        design = with_pmus(one_tiling(random.Random(seed)), 1)
        error = error_of(design)
        if error is None:
            continue
        assert "\n" not in error
        enough = int(re.findall(r"system.accelerator.pmu of at least (\d+)", error)[0])
        assert re.match(ALONE, error), error

        alone += 1
        assert error_of(with_pmus(design, enough)) is None, seed
        less = error_of(with_pmus(design, enough - 1))
        assert less is not None, seed
        assert f"pmu of at least {enough}" in less, seed
        found = re.match(TOGETHER, less)
        together += found is not None
        assert found is None or int(found[1]) == enough
    assert alone > 7
    assert together > 2


def test_the_named_number_of_configurations_is_enough() -> None:
    wider = 0
    for seed in range(30):
        design = with_pmus(one_tiling(random.Random(seed)), 9)
        found = re.findall(r"execution.num_config of at least (\d+)", error_of(design) or "")
        if not found:
            continue
        slots = int(found[0])

        for configurations in (slots - 1, slots):
            execution = replace(design.execution, configurations=configurations)
            assert (error_of(replace(design, execution=execution)) is None) == (configurations == slots), seed
        wider += 1
    assert wider > 1


def test_kernels_one_by_one_need_what_the_largest_one_needs() -> None:
    design = one_tiling(random.Random(3))
    single = with_pmus(replace(design, execution=replace(design.execution, kernel_by_kernel=True)), 1)

    with pytest.raises(InfeasibleError, match=ALONE) as caught:
        solve_design(single, DesignOptions())

    found = re.match(ALONE, str(caught.value))
    assert found is not None
    assert f"system.accelerator.pmu of at least {found[1]}," in str(caught.value)
    assert error_of(with_pmus(single, int(found[1]))) is None
