"""The checkers for plug-ins reject what they are there to reject."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import DisagreementError, PluginError, UserError
from dfcompile.generators.canonical_dags import chain
from dfcompile.records import replace
from dfcompile.scheduler import Blocks, Partitioner
from dfcompile.testing import check_onnx_expansion, check_partitioner, check_pass
from tests.unit.plugins.installed import write_package

PARTS = """
import random
from dataclasses import replace
from dfcompile.canonical_dag import DagBuilder, dag_pass
from dfcompile.frontend import Level
from dfcompile.lowering import ProgramRewriter, lowering_pass, onnx_expansion
from dfcompile.lowering.operators import Elementwise

@onnx_expansion("Relu", "doubled", source="lab")
def doubled(op, build):
    build.elementwise("2 * max(0, a)", [op.input(0)], op.output())

@lowering_pass("halves", level=Level.CANONICAL, source="lab")
def halves(program):
    graph = ProgramRewriter(program)
    last = graph.operators()[-1]
    found = last.canonical(Elementwise)
    if found is not None and "0.5" not in found.expression:
        graph.replace(last, operator=replace(found, expression=f"0.5 * ({found.expression})"))
    return graph.finish()

@lowering_pass("in-place", level=Level.CANONICAL, source="lab")
def in_place(program):
    graph = ProgramRewriter(program)
    tensor = graph.intermediates()[0]
    import dace
    program.sdfg.arrays[tensor.name].storage = dace.StorageType.CPU_Heap
    return program

@dag_pass("random-names", source="lab")
def random_names(dag):
    return replace(dag, name=str(random.random()))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import sys

    groups = ["dfcompile.expansions", "dfcompile.passes", "dfcompile.dag_passes"]
    write_package(tmp_path, "checkedlab", {"parts.py": PARTS}, groups)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("checkedlab")]:
        del sys.modules[name]


@pytest.mark.usefixtures("package")
def test_wrong_numbers_are_rejected() -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
    with pytest.raises(DisagreementError, match="output 'y'"):
        check_onnx_expansion("Relu", "doubled", graph=graph)
    with pytest.raises(DisagreementError, match="output 'y'"):
        check_pass("halves", graphs=[graph])


@pytest.mark.usefixtures("package")
def test_an_expansion_that_is_not_used_is_not_checked_silently() -> None:
    with pytest.raises(AssertionError, match="Relu=doubled: no operator of the graph is lowered by it"):
        check_onnx_expansion("Relu", "doubled", graph="g (float[2] x) => (float[2] y) { y = Exp(x) }")


@pytest.mark.usefixtures("package")
def test_a_pass_that_changes_its_argument_is_rejected() -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) y = Softmax(t) }"
    with pytest.raises(AssertionError, match="in-place: changes the program that it is given"):
        check_pass("in-place", graphs=[graph])


@pytest.mark.usefixtures("package")
def test_a_pass_that_gives_something_else_each_time_is_rejected() -> None:
    with pytest.raises(AssertionError, match="random-names: two runs give two canonical DAGs"):
        check_pass("random-names")


def in_one_block_each(dag: CanonicalDag, _pes: int) -> Blocks:
    return Blocks.of(dag, list(range(dag.nodes_count)))


def test_partitioners_are_rejected_that_overfill_or_change_their_mind() -> None:
    number = count()
    fickle = Partitioner(
        "fickle", "test", "mylab", lambda dag, _pes: Blocks.of(dag, [0] * dag.nodes_count) if next(number) % 2 else
        Blocks.of(dag, [int(node == dag.nodes_count - 1) for node in range(dag.nodes_count)]),
    )  # fmt: skip
    full = replace(fickle, partition=lambda dag, _pes: Blocks.of(dag, [0] * dag.nodes_count))
    with pytest.raises(AssertionError, match="fickle: two calls give two partitions of 'chain-1' on 64"):
        check_partitioner(fickle, pes=[64])
    with pytest.raises(PluginError, match="tasks against at most 1"):
        check_partitioner(full, pes=[1])
    with pytest.raises(UserError, match="partitioner 'sb-rlz': unknown"):
        check_partitioner("sb-rlz")


def test_partitioners_that_keep_the_rules_are_accepted() -> None:
    check_partitioner("work-ordered", dags=[chain(3)])
