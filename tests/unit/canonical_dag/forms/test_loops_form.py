"""Loops of kernels in files: there and back, and what cannot be one."""

import pytest

from dfcompile.canonical_dag import (
    CanonicalDag,
    DagBuilder,
    Digit,
    Kernel,
    KernelLoop,
    KernelTensor,
    KernelVariant,
    LoopKind,
    LoopPart,
    TensorRole,
    dag_from_json,
    dag_to_json,
    format_dag,
    parse_dag,
    verify,
)
from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.canonical_dag.forms.records import format_loops, parse_loops
from dfcompile.errors import UserError, VerificationError
from dfcompile.records import replace

ROW = KernelLoop("row", LoopPart.M, 6, LoopKind.PARALLEL, (Digit(25, 0), None), (Digit(576, 0),))
SUMMED = KernelLoop("k", LoopPart.K, 25, LoopKind.SUM, (Digit(1, 1), Digit(576, 0)), (None,))
PRODUCT = Kernel(
    "p", "MatMul", "p", "mv", KernelVariant.GEMM_INPUT1_WEIGHT, 1, 6, 25, 576, ("A", "B"), ("C",), 0, (ROW, SUMMED)
)  # fmt: skip
TEXT = "row m 6 parallel 25@0,- 576@0; k k 25 sum 1@1,576@0 -"


def dag_of(kernel: Kernel) -> CanonicalDag:
    tensors = tuple(
        KernelTensor(name, elements, 4, TensorRole.INTERMEDIATE)
        for name, elements in (("A", 150), ("B", 25 * 576), ("C", 6 * 576))
    )
    return replace(DagBuilder("model").finish(), kernels=(kernel,), tensors=tensors)


def test_loops_are_one_text() -> None:
    assert format_loops(PRODUCT.loops) == TEXT
    assert parse_loops(TEXT, "line 2") == PRODUCT.loops
    assert parse_loops("", "line 2") == ()


def test_both_forms_and_annotations_give_loops_back() -> None:
    dag = dag_of(PRODUCT)

    assert f'loops="{TEXT}"' in format_dag(dag)
    assert parse_dag(format_dag(dag)).kernels == dag_from_json(dag_to_json(dag)).kernels == (PRODUCT,)
    location = Annotation("p", "p", kernel=PRODUCT).location()
    assert Annotation.of_location(location, "p").kernel == PRODUCT


@pytest.mark.parametrize(
    "text", ["row", "row x 6 parallel - -", "row m 6 both - -", "row m six sum - -", "a m 6 sum 3 -"]
)
def test_what_is_no_loop_is_told_where(text: str) -> None:
    with pytest.raises(UserError, match=r"^line 2: loop .* against 'NAME outer\|m\|k\|n EXTENT parallel\|sum"):
        parse_loops(text, "line 2")


BROKEN = [
    (replace(ROW, extent=4), "extent 4 against a divisor of m 6"),
    (replace(ROW, extent=0), "extent 0 against a divisor of m 6"),
    (replace(ROW, inputs=(None,)), "1 digits against 2 arrays"),
    (replace(ROW, outputs=(None,)), "parallel against digits of every result"),
    (replace(SUMMED, outputs=(Digit(1, 0),)), "stride 1 x extent 25 against a divisor of 3456 elements of 'C'"),
    (replace(SUMMED, extent=5, outputs=(Digit(1, 0),)), "against"),
    (replace(ROW, outputs=(Digit(0, 0),)), "stride 0 x extent 6 against a divisor of 3456 elements of 'C'"),
]


@pytest.mark.parametrize(("loop", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_loop_that_does_not_fit_its_kernel_is_refused(loop: KernelLoop, message: str) -> None:
    verify(dag_of(PRODUCT))

    with pytest.raises(VerificationError, match=f"kernel 'p': loop '{loop.name}': .*{message}"):
        verify(dag_of(replace(PRODUCT, loops=(loop,))))
