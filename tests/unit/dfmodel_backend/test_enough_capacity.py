"""The capacity that a refusal says is enough is enough: the same design is not refused for it again."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.designs import designs

FIELDS = {"dram_cap": "dram_bytes", "sram_cap": "sram_bytes"}


def refusal(design: Design) -> InfeasibleError | None:
    try:
        solve_design(design, DesignOptions())
    except InfeasibleError as error:
        return error
    return None


@examples(40)
@given(designs(most=4), st.sampled_from([60.0, 150.0, 400.0]), st.sampled_from([40.0, 120.0, 400.0]), st.booleans())
def test_a_refused_design_fits_the_capacities_that_are_named(
    drawn: Design, sram_bytes: float, dram_bytes: float, by_kernel: bool
) -> None:
    machine = replace(drawn.machine, sram_bytes=sram_bytes, dram_bytes=dram_bytes, cores=8)
    design = replace(drawn, machine=machine, execution=replace(drawn.execution, kernel_by_kernel=by_kernel))
    named: list[str] = []
    while (error := refusal(design)) is not None:
        assert error.limit in FIELDS, str(error)
        assert str(ceil(error.enough)) in str(error)
        assert getattr(design.machine, FIELDS[error.limit]) < error.enough
        if "dram_cap of at least" not in str(error):  # or other limits are broken as well
            named.append(error.limit)
        assert named.count(error.limit) <= 1, f"refused again: {error}"
        enough = float(ceil(error.enough))
        machine = design.machine
        design = replace(
            design,
            machine=replace(machine, dram_bytes=enough)
            if error.limit == "dram_cap"
            else replace(machine, sram_bytes=enough),
        )
