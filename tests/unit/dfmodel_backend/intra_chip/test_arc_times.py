"""Times of configurations under little DRAM and SRAM: what is skipped or known already changes nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times, set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, dram_need, never_fits_dram
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.designs import designs, every_arc


@examples(60)
@given(st.data())
def test_arcs_without_room_in_dram_are_those_whose_tensors_wait_in_too_many_bytes(data: st.DataObject) -> None:
    drawn = data.draw(designs(5))
    tiles = data.draw(st.sampled_from([1, 2, 3]))
    unlimited = DesignModel(replace(drawn, machine=replace(drawn.machine, dram_bytes=0.0)), {}, tiles, RIGHT)
    part = data.draw(st.sampled_from([-0.01, 0.0, 0.2, 0.4, 0.6, 0.9, 1.0]))
    capacity = dram_need(unlimited).total + part * unlimited.most_waiting
    if capacity <= 0:
        return
    design = replace(drawn, machine=replace(drawn.machine, dram_bytes=capacity))
    model = DesignModel(design, {}, tiles, RIGHT)
    arcs = every_arc(model)

    first, again = arc_times(model, arcs), arc_times(model, arcs)

    members = arcs.members[arcs.added]
    waiting = model.waiting_bytes(members_of(arcs.down_sets, len(model.shares))[arcs.before], members)
    fits = dram_need(model).total + waiting <= capacity * (1 + 1e-12)
    np.testing.assert_array_equal(first, np.where(fits, set_times(model, members), np.inf))
    np.testing.assert_array_equal(first, again)


@examples(60)
@given(designs(5), st.sampled_from([2, 3, 6]), st.sampled_from([0.5, 1.0, 2.0]))
def test_a_choice_ruled_out_in_one_tile_fits_in_no_number_of_tiles(drawn: Design, tiles: int, part: float) -> None:
    whole = DesignModel(drawn, {}, 1, RIGHT)
    capacity = part * dram_need(whole).total
    design = replace(drawn, machine=replace(drawn.machine, dram_bytes=capacity))
    if never_fits_dram(DesignModel(design, {}, 1, RIGHT)):
        assert dram_need(DesignModel(design, {}, tiles, RIGHT)).total > capacity
