"""All mutants by area, and the unit tests that ought to kill each, the most telling ones first."""

from collections.abc import Mapping
from pathlib import PurePath

from tests.mutants.attained import ATTAINED
from tests.mutants.checkers import CHECKERS
from tests.mutants.evaluators import EVALUATORS
from tests.mutants.expansions import EXPANSIONS
from tests.mutants.extraction import EXTRACTION
from tests.mutants.mutant import Mutant
from tests.mutants.rtl import RTL
from tests.mutants.scheduler import SCHEDULER
from tests.mutants.sharding import SHARDING

MUTANTS: Mapping[str, tuple[Mutant, ...]] = {
    "extraction": EXTRACTION,
    "scheduler": SCHEDULER,
    "evaluators": EVALUATORS,
    "checkers": CHECKERS,
    "expansions": EXPANSIONS,
    "sharding": SHARDING,
    "attained": ATTAINED,
    "rtl": RTL,
}

UNIT_TESTS = "tests/unit"
# Below the folder of unit tests; where nothing is said, the room of the module and then its stage.
_TELLING: Mapping[str, tuple[str, ...]] = {
    "canonical_dag/analysis.py": ("canonical_dag/test_analysis.py",),
    "canonical_dag/verifier.py": ("canonical_dag/test_verifier.py",),
    "dfmodel_backend/attained": (
        "dfmodel_backend/check/test_task_mappings.py",
        "dfmodel_backend/attained/test_stores.py",
        "dfmodel_backend/attained/test_cores.py",
        "dfmodel_backend/attained/test_fastest_chain.py",
        "dfmodel_backend/attained",
    ),
    "dfmodel_backend/check": ("dfmodel_backend/check/test_limits.py", "dfmodel_backend/check"),
    "dfmodel_backend/evaluate/graphs.py": (
        "dfmodel_backend/evaluate/test_evaluator.py",
        "dfmodel_backend/check/test_mappings_of_chips.py",
    ),
    "dfmodel_backend/inter_chip": ("dfmodel_backend/inter_chip", "dfmodel_backend/sharding"),
    "dfmodel_backend/intra_chip": ("dfmodel_backend/evaluate", "dfmodel_backend/intra_chip"),
    "lowering/expansions/conv.py": (
        "lowering/expansions/test_convolution.py",
        "lowering/expansions/test_conv_transpose.py",
    ),
    "lowering/expansions/elementwise.py": ("lowering/expansions/test_elementwise_operators.py",),
    "lowering/expansions/positions.py": ("lowering/expansions/test_indexed_operators.py",),
    "lowering/expansions/indexed.py": ("lowering/expansions/test_movements.py",),
    "lowering/expansions/products.py": ("lowering/expansions/test_gemm.py",),
    "lowering/expansions/matmul.py": ("lowering/expansions/test_matmul.py",),
    "lowering/expansions/normalization.py": ("lowering/expansions/test_normalizations.py",),
    "lowering/expansions/own_loops.py": ("lowering/expansions/test_reductions.py",),
    "lowering/expansions/pooling.py": ("lowering/expansions/test_poolings.py",),
    "lowering/expansions/reduce.py": ("lowering/expansions/test_reductions.py",),
    "lowering/expansions/movement.py": ("lowering/expansions/test_movements.py",),
    "lowering/expansions/softmax.py": ("lowering/expansions/test_reductions.py",),
    "lowering/expansions/transpose.py": ("lowering/expansions/test_movements.py",),
    "lowering/operators": ("lowering/operators",),
    "lowering/windows.py": (
        "lowering/expansions/test_poolings.py",
        "lowering/expansions/test_convolution.py",
        "lowering/expansions",
    ),
    "dfmodel_backend/sharding": ("dfmodel_backend/sharding", "dfmodel_backend/check"),
    "dfmodel_backend/solve": ("dfmodel_backend/sharding", "dfmodel_backend/solve"),
    "moved_operands.py": ("test_operator_shapes.py", "io_bounds"),
    "scheduler/checker.py": ("scheduler/test_checker_limits.py", "scheduler/test_checker.py"),
    "scheduler/fifo": ("scheduler/fifo", "scheduler/test_reference_schedules.py"),
    "scheduler/evaluation.py": ("scheduler/test_evaluation.py", "scheduler/bounds"),
}


def concerned_tests(file: str) -> tuple[str, ...]:
    """Return folders and files of unit tests, in the order in which they are run on a mutant of a module."""
    path = PurePath(file)
    parents = [str(parent) for parent in path.parents][:-1]
    telling = next((_TELLING[name] for name in (file, *parents) if name in _TELLING), ())
    stages = [parent for parent in parents if parent != "lowering"] or parents or [f"test_{path.stem}.py"]
    return tuple(dict.fromkeys(f"{UNIT_TESTS}/{name}" for name in (*telling, *stages)))
