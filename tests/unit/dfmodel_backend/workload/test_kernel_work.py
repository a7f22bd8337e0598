"""What cores see of a kernel, whatever it comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.intra_chip.cores import SplitTable, core_table
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.graphs import elementwise, gemm, machine

EXTENTS = st.integers(1, 40)


@examples(60)
@given(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 9), st.integers(1, 8), st.integers(1, 3))
def test_a_staged_kernel_has_k_on_stages_of_its_own(
    rows: int, k: int, n: int, stages: int, cores: int, lanes: int
) -> None:
    staged = KernelWork("a", systolic=True, rows=rows, k=k, n=n, stages_per_core=stages)
    other_way_round = KernelWork("a", systolic=True, rows=rows, k=n, n=k)
    chip = machine(cores, lanes=lanes).machine
    wide = replace(chip, stages_per_core=stages)

    assert core_table(staged, chip) == core_table(other_way_round, wide)
    assert SplitTable(staged, chip).cycles == SplitTable(other_way_round, wide).cycles
    assert staged.flop == other_way_round.flop == 2 * rows * k * n


@examples(60)
@given(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 4))
def test_rows_of_a_product_and_all_elements_of_others_go_to_lanes(m: int, k: int, n: int, outer: int) -> None:
    product = KernelWork.of(gemm("a", m, k, n, outer), 5.0)
    others = KernelWork.of(replace(elementwise("b", m), n=n, outer=outer), 0.0)

    assert product == KernelWork("a", systolic=True, rows=outer * m, k=k, n=n, network_ns=5.0)
    assert (product.columns, product.steps) == (n, k)
    assert others == KernelWork("b", systolic=False, rows=outer * m * n, k=1, n=1)
    assert (others.columns, others.steps) == (1, 1)


def test_columns_of_a_file_s_elementwise_kernel_follow_one_another() -> None:
    chip = machine(cores=4).machine
    table = core_table(KernelWork("a", systolic=False, rows=4, k=1, n=3), chip)

    assert (table.cycles, table.cores) == ((3, 6, 12), (4, 2, 1))


@pytest.mark.parametrize("kernel", [gemm("a", 3, 4, 5, 2), elementwise("b", 7)])
def test_operations_are_those_of_the_kernel(kernel: Kernel) -> None:
    assert KernelWork.of(kernel, 0.0).flop == kernel.flop


@pytest.mark.parametrize(("stated", "expected"), [(0, 1), (3, 3)])
def test_a_design_states_the_stages_of_its_contractions(stated: int, expected: int) -> None:
    design = read_design(DESIGNS / "readme_gpt3_1t_sn30.txt")
    kernels = tuple(replace(kernel, use_effective_stage=True) for kernel in design.kernels)
    staged = replace(design, kernels=kernels, execution=replace(design.execution, effective_stage=stated))
    models = [DesignModel(one, {}, 1) for one in (staged, design)]

    for work, plain in zip(*(model.works for model in models), strict=True):
        assert work == replace(plain, stages_per_core=expected if plain.systolic else 0)
