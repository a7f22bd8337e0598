"""Short tasks of the largest scopes of an operator alone: they leave tasks to others."""

import numpy as np

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import flow_of
from dfcompile.choosing.estimate import Memory, estimate
from dfcompile.choosing.operator_options import OperatorOption
from dfcompile.choosing.scoring import Machine, OnMachine
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, Effort, ExpansionRule
from dfcompile.scheduler import ScheduleOptions
from tests.onnx_text import program_from_text
from tests.unit.choosing.automatic_choices import automatic

PES = 16
MEMORY = Memory(16 * 2_730.0, 300.0)  # as much for each element as the canonical machine has
WAYS = (Choice("Conv", "winograd4"), Choice("Convolution", "filters"), Choice("MatMul", "columns"))
PROGRAM = program_from_text(
    "g (float[1,64,8,8] x) => (float[1,64,8,8] z) { z = Conv<pads=[1,1,1,1]>(x, w) }",
    w=np.ones((64, 64, 3, 3), np.float32),
)


def options_of_winograd() -> tuple[OperatorOption, ...]:
    rules = tuple(ExpansionRule(choice.op_type, (choice.name,)) for choice in WAYS)
    machine = Machine(MEMORY, lambda _, timed: OnMachine(0.0, timed.schedule, {}))
    found = automatic(PROGRAM, rules).on(ScheduleOptions(PES, "best", effort=Effort.QUICK), machine=machine)
    (operator,) = found.operators
    return operator.known


def test_many_pieces_are_looked_at_for_the_largest_scopes_alone_as_well() -> None:
    known = {(option.pieces, option.rest): option.alone for option in options_of_winograd()}

    shortened = [pieces for pieces, rest in known if rest is not None]
    assert shortened == [pieces for pieces, rest in known if rest is None and (pieces or 0) > PES]
    assert {rest for _, rest in known} == {None, PES}
    for pieces in shortened:
        assert 2 * known[pieces, PES].tasks < known[pieces, None].tasks
        assert known[pieces, PES].cycles < 1.1 * known[pieces, None].cycles


def test_what_an_option_takes_is_what_the_granularity_that_it_names_gives() -> None:
    outline = OutlinedModel(PROGRAM, registered_expansions()).outline(WAYS)
    for option in options_of_winograd():
        rest = () if option.rest is None else (("Conv_0", option.rest),)
        granularity = Granularity(own=(("Conv_0", option.pieces),), rest=rest)
        assert option.is_of("Conv_0", dict(option.expansions), granularity)
        flow = flow_of(outline.graph, ExtractionOptions(granularity=granularity))
        assert estimate(flow, PES, memory=MEMORY).tasks == option.alone.tasks
