"""The ways through the code that docs/architecture.md lists: every file runs, none is gone back to, none is missing.

What is decided once has a home there, and no other file decides it.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import onnx
import pytest

import dfcompile
from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import CanonicalDag, LoopKind
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.evaluate.graphs import evaluate_sharding
from dfcompile.frontend import Program, read_model
from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions
from tests.onnx_text import model_from_text, program_from_text
from tests.syntax_trees import tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = f"{Path(dfcompile.__file__).parent}/"
SOFTMAX = "agraph (float[4,8] x) => (float[4,8] y) { y = Softmax(x) }"
TWO_PRODUCTS = "agraph (float[64,64] x) => (float[64,64] y) { t = MatMul(x, w) y = MatMul(t, w) }"

Way = Callable[[], object]
# What runs on a way and decides nothing about its answer, by folder or file.
ON_ALL_WAYS = (
    "canonical_dag/builder.py", "canonical_dag/dag.py", "canonical_dag/kernel.py", "canonical_dag/dag.py",
    "canonical_dag/analysis.py", "distinct.py", "host/", "options/", "plugins/", "records.py",
)  # fmt: skip
BESIDE = {
    "makespan": (
        "canonical_dag/forms/", "canonical_dag/verifier.py", "actor_graphs/",  # reading the file
        "audit/", "cli/", "api/", "report/",  # options, output
        "scheduler/baseline.py", "scheduler/gaps.py",  # another schedule
        "scheduler/checker.py", "scheduler/recomputation.py",  # checks
        "scheduler/simulation/",  # the replay made fast
        "scheduler/bounds/", "scheduler/blocks.py", "scheduler/options.py", "scheduler/schedules.py",
        "scheduler/front.py", "scheduler/gangs.py",
        "dfmodel_backend/machine/system.py", "scheduler/what_if.py",  # nobody asks for another machine
    ),
    "tasks": (
        "canonical_dag/verifier.py",  # a check
        "canonical_dag/extraction/granularity.py", "canonical_dag/extraction/scopes.py",  # nobody asks for other tasks
        "frontend/reading.py", "frontend/model.py", "frontend/file_kinds/", "frontend/onnx/",  # the file itself
        "frontend/normaliser/", "frontend/validation/", "frontend/operator_claims.py",  # nothing to change or to refuse
        "frontend/element_kind.py",
        "frontend/sdfg/", "lowering/program_builder.py", "lowering/program_nodes.py",  # SDFGs
        "lowering/expansion.py",  # plug-ins
        "lowering/node.py", "lowering/tensor.py", "lowering/operators/base.py", "lowering/operators/field_kinds.py",
        "lowering/expressions.py", "lowering/expressions.py",  # values
        "lowering/nests/program.py",
        "lowering/map_fragment.py",  # nests
        "lowering/operators/loop_nest.py",  # kernels
    ),
    "configuration": (
        "dfmodel_backend/columns.py", "dfmodel_backend/options.py", "dfmodel_backend/workload/graph.py",
        "dfmodel_backend/machine/system.py", "dfmodel_backend/machine/cost.py",
        "dfmodel_backend/machine/network/topologies.py", "dfmodel_backend/machine/network/dimension_kind.py",
    ),
}  # fmt: skip
TITLES = {
    "makespan": "A DAG gets its makespan",
    "tasks": "A Softmax becomes tasks",
    "configuration": "A configuration gets its time on 4 chips",
}


@dataclass(slots=True, eq=False)
class Walk:
    """What ran on a way.

    Attributes:
        files: of the package, below its folder.
        calls: from a listed file to another one, with what was called first; reading a property is no call.
    """

    listed: tuple[str, ...]
    files: dict[str, None] = field(default_factory=dict)
    calls: dict[tuple[str, str], str] = field(default_factory=dict)

    def walk(self, way: Way) -> None:
        way()  # what is imported, compiled or kept for the next time
        properties = property_codes()

        def note(frame: FrameType, event: str, _: object) -> None:
            file = file_of(frame)
            if event != "call" or file is None:
                return
            self.files.setdefault(file)
            caller = self._listed_caller(frame) if file in self.listed and frame.f_code not in properties else None
            if caller not in (None, file):
                assert caller is not None
                self.calls.setdefault((caller, file), frame.f_code.co_qualname)

        sys.setprofile(note)
        try:
            way()
        finally:
            sys.setprofile(None)

    def _listed_caller(self, frame: FrameType) -> str | None:
        above = frame.f_back
        while above is not None and file_of(above) not in self.listed:
            above = above.f_back
        return None if above is None else file_of(above)


def file_of(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    return name.removeprefix(PACKAGE) if name.startswith(PACKAGE) else None


def property_codes() -> frozenset[CodeType]:
    """Return the code of all properties of classes of the package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("dfcompile.")]
    classes = {kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)}
    found = [one for kind in classes for one in vars(kind).values()]
    getters = [one.fget if isinstance(one, property) else one.func for one in found if isinstance(one, PROPERTIES)]
    return frozenset(getter.__code__ for getter in getters if inspect.isfunction(getter))


PROPERTIES = (property, cached_property)


def listed_files(way: str) -> tuple[str, ...]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    after = text.partition(f"**{TITLES[way]}**")[2]
    numbered = after[after.index("\n1. ") :].split("\n\n")[0]
    return tuple(re.findall(r"^\d+\. `([\w/.]+)`: \S", numbered, re.MULTILINE))


def makespan(folder: Path) -> Way:
    file = str(folder / "dag.json")
    assert main(["generate", "fft", "--size", "8", "--seed", "1", "-o", file]) == 0
    return lambda: main(["schedule", file, "--pes", "16", "--partition", "sb-rlx", "-o", "-"])


def dag_of(program: Program) -> CanonicalDag:
    table = registered_expansions()
    nests = lower_to_nests(lower_to_canonical(program, table), table)
    return extract_graph(nests.graph, parameters=tuple(nests.parameters))


def tasks(folder: Path) -> Way:
    file = folder / "softmax.onnx"
    onnx.save(model_from_text(SOFTMAX), str(file))
    return lambda: dag_of(read_model(file).program)


def configuration(_: Path) -> Way:
    dag = dag_of(program_from_text(TWO_PRODUCTS, w=np.zeros((64, 64), np.float32)))
    system = backend.load_system("sn30").with_cores(16).parts(4)[0]
    graph = backend.dataflow_graph(dag)
    first, second = graph.kernels
    summed = next(number for number, loop in enumerate(second.loops) if loop.kind is LoopKind.SUM)
    sharding = {first.name: (0,), second.name: (summed,)}  # by rows, then along what is summed: an all-to-all
    together = (tuple(kernel.name for kernel in graph.kernels),)
    options = backend.MappingOptions()
    return lambda: evaluate_sharding(backend.dataflow_graph(dag), system, sharding, together, options)


@pytest.mark.parametrize(
    ("way", "prepare"), [("makespan", makespan), ("tasks", tasks), ("configuration", configuration)]
)
def test_listed_files_run_call_forward_and_are_all(way: str, prepare: Callable[[Path], Way], tmp_path: Path) -> None:
    walk = Walk(listed_files(way))
    walk.walk(prepare(tmp_path))
    place = {file: number for number, file in enumerate(walk.listed)}
    beside = (*ON_ALL_WAYS, *BESIDE[way])

    assert len(place) == len(walk.listed) >= 12
    assert [file for file in walk.listed if file not in walk.files] == []
    assert {call: name for call, name in walk.calls.items() if place[call[0]] > place[call[1]]} == {}
    assert [file for file in walk.files if file not in place and not file.startswith(beside)] == []
    assert [one for one in beside if not Path(PACKAGE, one).exists()] == []


# Of numpy, what makes a column of sizes; and what tells that these are sizes of FIFOs.
MADE_BY = ("where", "minimum", "maximum", "clip", "full")
SIZES = frozenset({"capacity", ".fifo_capacity", ".peak", ".max_fifo", "fifos"})
STREAMS = frozenset({"streamed", ".streamed", "relayed", ".relayed"})


def fifo_sizes(tree: ast.AST) -> Iterator[str]:
    """Yield expressions that make capacities of FIFOs."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("np"), attr=name)) if name in MADE_BY:
                read = set(re.findall(r"\.?\w+", ast.unparse(node)))
                if read & SIZES or (".edge_volume" in read and read & STREAMS):
                    yield ast.unparse(node)
            case ast.keyword("fifo_capacity", ast.BinOp() | ast.IfExp() | ast.List() | ast.ListComp()):
                yield ast.unparse(node)


def memory_sizes(tree: ast.AST) -> Iterator[str]:
    """Yield expressions that look into what a system file says of the SRAM or the DRAM of a chip."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Attribute(attr="sram" | "capacity"), attr="value" | "per_core" | "of"):
                yield ast.unparse(node)


def element_sizes(tree: ast.AST) -> Iterator[str]:
    """Yield expressions that ask numpy, or DaCe, for the bytes of an element type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (node.attr == "itemsize" or ast.unparse(node).endswith(").bytes")):
            yield ast.unparse(node)


def places(tree: ast.AST) -> Iterator[str]:
    """Yield calls that say where the data of a configuration lies, or choose it."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("StoreUse" | "hold")):
                yield ast.unparse(node)


# What is decided in one file, and who else may look: replays change FIFOs to see what happens, checkers count anew.
HOMES = {
    "how large each FIFO is": (fifo_sizes, ("scheduler/simulation/",)),
    "how large SRAM and DRAM of a chip are": (memory_sizes, ("dfmodel_backend/machine/", "dfmodel_backend/check/")),
    "what SRAM holds while a configuration runs": (places, ()),
    "how many bytes an element takes": (element_sizes, ("frontend/", "canonical_dag/")),  # as files hold them
}


def package_trees() -> dict[str, ast.Module]:
    return {str(file.relative_to(PACKAGE)): tree_of(file) for file in Path(PACKAGE).rglob("*.py")}


@pytest.mark.parametrize("subject", HOMES)
def test_no_other_file_decides_what_has_a_home(subject: str) -> None:
    decisions, others = HOMES[subject]
    table = (ROOT / "docs" / "architecture.md").read_text()
    (home,) = re.findall(rf"^\| {subject} \| `([\w/.]+)` \|", table, re.MULTILINE)
    found = {file: list(decisions(tree)) for file, tree in package_trees().items()}

    assert found[home] != []
    assert {file: lines for file, lines in found.items() if lines and not file.startswith((home, *others))} == {}


@pytest.mark.parametrize(
    ("decisions", "planted"),
    [
        (fifo_sizes, "found = replace(planned, fifo_capacity=np.minimum(planned.fifo_capacity, most))"),
        (fifo_sizes, "columns = (pe, start, np.where(streamed, np.maximum(dag.edge_volume, 1), 0))"),
        (fifo_sizes, "placed(streamed | relayed, np.where(placing.relayed, dag.edge_volume, inside))"),
        (fifo_sizes, "found = replace(planned, fifo_capacity=2 * held)"),
        (element_sizes, "size = np.dtype(tensor.dtype).itemsize * tensor.elements"),
        (element_sizes, "size = scalar_type(tensor.dtype).bytes"),
        (places, "found = StoreUse(name, Place.CHIP, *sizes)"),
        (memory_sizes, "room = chip.sram.value * chip.cores"),
    ],
)
def test_a_decision_elsewhere_is_seen(decisions: Callable[[ast.AST], Iterator[str]], planted: str) -> None:
    assert list(decisions(ast.parse(planted))) != []
