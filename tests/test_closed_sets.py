"""Where a member of a closed set chooses, one that nobody thought of is an error, not the last branch."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dfcompile.canonical_dag import KernelVariant
from dfcompile.canonical_dag.dag import NodeKind
from dfcompile.dfmodel_backend import Overlap
from dfcompile.dfmodel_backend.check.designs import _label as checked_label
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.evaluate.designs import _repetitions
from dfcompile.dfmodel_backend.inter_chip.degrees import NetworkTime, degrees_of, micro_batches
from dfcompile.dfmodel_backend.inter_chip.shares import Layout, conversion, shares_of
from dfcompile.dfmodel_backend.intra_chip.memory_units import _label
from dfcompile.dfmodel_backend.machine.network.collective_times import ns_per_byte
from dfcompile.dfmodel_backend.machine.system import Link, Placement, PmuGrid
from dfcompile.dfmodel_backend.milp import MilpOptions, solve
from dfcompile.dfmodel_backend.placement import exchange_dimensions, walk
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import InternalError
from dfcompile.lowering import Reduction
from dfcompile.lowering.execution.compiled_form import _extremum
from dfcompile.options import Timing, Volumes
from dfcompile.records import replace
from dfcompile.visualization.dataflow import _SHAPES
from tests.locations import DESIGNS

NEW: Any = SimpleNamespace(value="new", name="NEW", shard="new")  # a member that was added without a thought


def with_kind(kind: object) -> Design:
    design = read_design(DESIGNS / "llm_175B_fwd_kbk_8x1.txt")
    batch = replace(design.execution.batch, kind=kind)  # type: ignore[arg-type]
    return replace(design, execution=replace(design.execution, batch=batch))


LLM = read_design(DESIGNS / "llm_175B_fwd_kbk_8x1.txt")
ODD = with_kind(NEW)
CHOICES: dict[str, Callable[[], object]] = {
    "overlap of a configuration": lambda: Overlap.time_ns(NEW, 1.0, 2.0, 3.0),
    "overlap of configurations": lambda: Overlap.times_ns(NEW, np.ones(1), np.ones(1), np.ones(1)),
    "collective": lambda: ns_per_byte(NEW, Link("r", 8, 1.0, "TP", 0.0)),
    "milp": lambda: solve(SimpleNamespace(), MilpOptions(solver=NEW)),
    "repetitions": lambda: _repetitions(ODD.execution.batch),
    "degrees": lambda: degrees_of(ODD),
    "micro-batches": lambda: micro_batches(ODD, degrees_of(LLM)),
    "shares": lambda: shares_of(ODD, degrees_of(LLM), {}, 1, 1.0),
    "network time": lambda: NetworkTime(ODD, degrees_of(LLM), RIGHT),
    "dimensions of a collective": lambda: exchange_dimensions(ODD, NEW),
    "layout": lambda: conversion(Layout.ROWS, NEW),
    "label": lambda: _label(NEW, is_first=True),
    "placement": lambda: list(walk(PmuGrid(1, 1.0, 2, 2, NEW))),
    "kernel": lambda: KernelVariant.is_gemm.fget(NEW),  # type: ignore[attr-defined]
    "reduction": lambda: Reduction.initial(NEW, "float32"),
    "extremum": lambda: _extremum(NEW),
    "volumes": lambda: Volumes.are_whole_arrays.fget(NEW),  # type: ignore[attr-defined]
    "timing": lambda: Timing.is_exact.fget(NEW),  # type: ignore[attr-defined]
    "node": lambda: NodeKind.is_computational.fget(NEW),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_member_that_nobody_thought_of_is_an_error(choice: str) -> None:
    with pytest.raises(AssertionError, match="Expected code to be unreachable"):
        CHOICES[choice]()


def test_nothing_is_walked_where_nothing_is_placed() -> None:
    with pytest.raises(InternalError, match="found a grid on which nothing is to be placed"):
        list(walk(PmuGrid(1, 1.0, 2, 2, Placement.NONE)))


@pytest.mark.parametrize("variant", KernelVariant)
@pytest.mark.parametrize("is_first", [True, False])
def test_checker_and_evaluator_spread_tensors_the_same_way(variant: KernelVariant, *, is_first: bool) -> None:
    kernel = replace(LLM.kernels[0], variant=variant)

    assert _label(variant, is_first=is_first) is checked_label(kernel, is_first=is_first)


def test_every_kind_of_node_has_a_shape_and_computational_ones_come_first() -> None:
    assert set(_SHAPES) == set(NodeKind)
    assert all(kind.is_computational == (kind < NodeKind.BUFFER) for kind in NodeKind)
    kinds = [kind.is_computational for kind in sorted(NodeKind)]
    assert [is_computational for is_computational, _ in itertools.groupby(kinds)] == [True, False]


def test_reductions_that_keep_an_operand_are_told() -> None:
    assert {one: _extremum(one) for one in Reduction} == {
        Reduction.SUM: None, Reduction.PRODUCT: None, Reduction.MAX: Reduction.MAX, Reduction.MIN: Reduction.MIN,
    }  # fmt: skip
    assert Reduction.MAX.initial("int8") == "-128"
    assert Reduction.MIN.initial("int8") == "127"
    assert (Reduction.MAX.initial("bool"), Reduction.MIN.initial("bool")) == ("False", "True")
    assert (Reduction.MAX.initial("float32"), Reduction.MIN.initial("float32")) == ("-inf", "inf")
