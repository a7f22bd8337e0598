"""Tile counts of which nothing fits are found without trying each of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile.dfmodel_backend.fusion.fuse
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, arcs_within
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.sharding.designs import allowed_dims
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.designs import designs


@given(st.data(), st.sampled_from([RIGHT, ORIGINAL]))
def test_what_fits_in_tiles_fits_in_more_of_them(data: st.DataObject, compatibility: Compatibility) -> None:
    design = data.draw(designs())
    tilings = st.sampled_from([Dim.N, Dim.M, Dim.NONE])
    kernels = tuple(replace(kernel, tiling=data.draw(tilings)) for kernel in design.kernels)
    design = replace(design, kernels=kernels)
    sharding = {kernel.id: data.draw(st.sampled_from(allowed_dims(kernel))) for kernel in design.kernels}
    fusion = DesignFusion(design, DesignOptions(compatibility=compatibility))
    models = [DesignModel(design, sharding, tiles, compatibility) for tiles in range(1, 8)]
    fitting = [fusion.may_fit(model) for model in models]

    assert fitting == sorted(fitting)
    for model, fits in zip(models, fitting, strict=True):
        found = fusion.fuse(model)
        assert fits or found is None
        if not design.machine.dram_bytes:
            assert fits == (found is not None)


@pytest.mark.parametrize("compatibility", [RIGHT, ORIGINAL])
def test_a_design_of_which_no_tile_count_fits_is_refused_at_once(
    compatibility: Compatibility, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 90 tile counts had its configurations listed and was found not to fit."""
    design = read_design(DESIGNS / "llm_1T_fwd_joint_CMN.txt")
    design = replace(
        design,
        machine=replace(design.machine, sram_bytes=design.machine.sram_bytes * 0.5),
        execution=replace(design.execution, configurations=2),
    )
    listed = []

    def count(*arguments: object) -> Arcs | None:
        listed.append(arguments)
        return arcs_within(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(dfcompile.dfmodel_backend.fusion.fuse, "arcs_within", count)
    with pytest.raises(InfeasibleError, match="no 2 configurations hold all kernels"):
        solve_design(design, DesignOptions(compatibility=compatibility))

    assert len(listed) < 10
