"""Defaults by condition: an expansion that is taken for some operators of a type."""

from collections.abc import Sequence

import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import RegistrationError
from dfcompile.lowering import (
    CanonicalFragment,
    Choice,
    ExpansionTable,
    Operator,
    lower_to_canonical,
    lower_to_maps,
    onnx_expansion,
    registered_expansions,
)
from dfcompile.plugins import Plugin
from dfcompile.records import replace
from tests.onnx_text import program_from_text

TABLE = registered_expansions()


def chosen(group: int, choices: Sequence[Choice] = (), table: ExpansionTable = TABLE) -> str:
    program = program_from_text(
        f"g (float[1,6,5,5] x) => (float[1,6,3,3] y) {{ y = Conv<group={group}>(x, w) }}",
        w=np.ones((6, 6 // group, 3, 3), np.float32),
    )
    (found,) = (each for each in lower_to_canonical(program, table, choices).chosen if each.op_type == "Conv")
    return found.name


@pytest.mark.parametrize(("group", "name"), [(1, "im2col"), (2, "direct"), (6, "direct")])
def test_grouped_convolutions_are_not_cut_into_tiny_products(group: int, name: str) -> None:
    assert chosen(group) == name


@pytest.mark.parametrize("group", [1, 6])
def test_users_choice_comes_before_any_condition(group: int) -> None:
    assert chosen(group, [Choice("Conv", "im2col")]) == "im2col"
    assert chosen(group, [Choice("Conv", "direct")]) == "direct"


def test_depthwise_convolution_has_a_task_per_channel() -> None:
    program = program_from_text(
        "g (float[1,32,10,10] x) => (float[1,32,8,8] y) { y = Conv<group=32>(x, w) }",
        w=np.ones((32, 1, 3, 3), np.float32),
    )

    dag = extract(lower_to_maps(lower_to_canonical(program, TABLE), TABLE).sdfg)

    assert dag.tasks_count == 32


def test_two_conditions_that_an_operator_meets_are_both_named() -> None:
    @onnx_expansion("Conv", "mine", default=lambda op: op.integer("group", 1) == 6)
    def mine(_op: Operator, _build: CanonicalFragment) -> None:
        """Nothing."""

    rival = replace(mine, module="mylab.convs")
    table = ExpansionTable.of([*TABLE.plugins, Plugin(rival, "mylab.convs")])

    assert chosen(2, table=table) == "direct"
    with pytest.raises(RegistrationError, match=r"'Conv_0'.*expansions\.conv\.direct and by mylab\.convs\.mine"):
        chosen(6, table=table)
