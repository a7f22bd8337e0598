"""What a task takes in a cycle on cores of many lanes and stages."""

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, Kernel, KernelVariant
from dfcompile.dfmodel_backend import load_system
from dfcompile.dfmodel_backend.attained.cores import on_cores
from dfcompile.records import replace


def products_and_sums(*, streamed: bool) -> CanonicalDag:
    """Return a task of a contraction and an elementwise one behind it, through memory or not."""
    builder = DagBuilder("two")
    common = {"op": "X", "origin": "x", "expansion": "e", "outer": 1, "n": 1, "inputs": (), "outputs": ()}
    gemm = builder.add_kernel(Kernel(name="gemm", variant=KernelVariant.GEMM_INPUT1_WEIGHT, m=2, k=50, **common))  # type: ignore[arg-type]
    add = builder.add_kernel(Kernel(name="add", variant=KernelVariant.ELEMENTWISE_INPUT1, m=2, k=1, **common))  # type: ignore[arg-type]
    data = builder.add_memory(builder.add_scope("data"))
    contraction = builder.add_task(builder.add_scope("contraction", gemm))
    elementwise = builder.add_task(builder.add_scope("elementwise", add))
    builder.add_edge(data, contraction, 100)
    if streamed:
        builder.add_edge(contraction, elementwise, 20)
    else:
        memory = builder.add_memory(builder.add_scope("memory"))
        builder.add_edge(contraction, memory, 20)
        builder.add_edge(memory, elementwise, 20)
    return builder.finish()


def volumes(*, streamed: bool, lanes: int, stages: int) -> list[int]:
    chip = replace(load_system(None).accelerator, lanes_per_core=lanes, stages_per_core=stages)
    return [int(volume) for volume in on_cores(products_and_sums(streamed=streamed), chip).edge_volume]


def test_an_element_is_a_word_on_a_core_of_one_lane() -> None:
    assert volumes(streamed=True, lanes=1, stages=1) == [100, 20]


def test_contractions_alone_use_the_stages() -> None:
    assert volumes(streamed=False, lanes=4, stages=5) == [5, 1, 5]


def test_who_streams_with_others_has_their_words() -> None:
    assert volumes(streamed=True, lanes=4, stages=5) == [25, 5]


def test_a_word_that_is_not_full_takes_a_cycle_too() -> None:
    assert volumes(streamed=True, lanes=3, stages=1) == [34, 7]
