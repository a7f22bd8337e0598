"""Generated graphs are those of published design files, word for word."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from dfcompile.dfmodel_backend.design_file.message import Gemm, text_of, variant_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from dfcompile.generators.catalogue import WORKLOADS
from dfcompile.generators.language_model_workloads import llm_decode, llm_forward, llm_training
from dfcompile.generators.other_workloads import butterfly_products, dlrm_training, fft, hpl, mamba_scan
from dfcompile.generators.workload_kernels import design_text
from tests.locations import DESIGNS

SOLVED_DECODE = DESIGNS / "solved_decode_ring16.txt"
LLM_1T = {"hidden": 25600, "seq": 2048, "num_head": 160, "head_dim": 160, "word": 2}
LLM_175B = {"hidden": 12288, "seq": 2048, "num_head": 96, "head_dim": 128, "word": 2}
LLM_13B = {"hidden": 5120, "seq": 2048, "num_head": 40, "head_dim": 128, "word": 2}
DECODE = {"hidden": 12288, "num_head": 96, "head_dim": 128, "word": 1, "tensor_parallel": 12}
DLRM = {"bottom_num_mlp": 5, "top_num_mlp": 15, "pooled_row": 15, "num_table": 600, "emb_dim": 93, "word": 2}
HPL = {"n": 1048576, "b": 2048, "iterations": 64, "word": 2}
PUBLISHED: dict[str, tuple[str, dict[str, int | str]]] = {
    "readme_gpt3_1t_sn30": ("llm-fwdbwd", {**LLM_1T}),
    "llm_1T_calculon_4_32_32": ("llm-fwdbwd", {**LLM_1T}),
    "llm_1T_megatron_25600": ("llm-fwdbwd", {**LLM_1T}),
    "llm_1T_h100_2dtorus": ("llm-fwdbwd", {**LLM_1T}),
    "llm_1T_sn30_3dtorus_dataflow": ("llm-fwdbwd", {**LLM_1T}),
    "llm_13B_rdu_dp16": ("llm-fwdbwd", {**LLM_13B}),
    "llm_175B_tpu_3dtorus": ("llm-fwdbwd", {**LLM_175B}),
    "llm_175B_fwd_kbk_8x1": ("llm-fwd", {**LLM_175B}),
    "llm_175B_fwd_sramdram_mm": ("llm-fwd", {**LLM_175B}),
    "llm_1T_fwd_joint_CMN": ("llm-fwd", {**LLM_1T}),
    "serve_gpt3_prefill_genz_f10_4x": ("llm-fwd", {**LLM_175B, "seq": 10000, "word": 1}),
    "serve_gpt3_decode_genz_f10_1x": ("llm-decode", {**DECODE, "window": 10000, "cache": "streamed"}),
    "serve_gpt3_decode_genz_f13_025x": ("llm-decode", {**DECODE, "window": 20000, "cache": "streamed"}),
    "dlrm_A_zionex_128": ("dlrm", {**DLRM, "mlp_dim": 3375, "micro_batch_size": 512, "num_chip": 128}),
    "dlrm_wse2_dgx2_1024": ("dlrm", {**DLRM, "mlp_dim": 6750, "micro_batch_size": 512, "num_chip": 1024}),
    "hpl_h100_2dtorus_1024": ("hpl", {**HPL}),
    "hpl_h100_dgx1_1024": ("hpl", {**HPL}),
    "fft_a100_1024": ("fft", {"length": 1073740000000, "word": 4}),
    "fft_h100_dgx1_1024": ("fft", {"length": 1099511627776, "word": 2, "radix": 32}),
    "mamba_scan_256k_rdu": ("mamba-scan", {"seq": 262144, "hidden": 32, "word": 2}),
}
SOLVED_FIELDS = (
    *("config", "topological_number", "sharding", "communication_type", "communication_size"),
    *("shard_outer_M", "shard_K", "shard_N", "buffer_depth", "tensor_size", "shard_tensor_size"),
    *("startName", "endName", "lane_stage_type"),
)


def words_of_graph(path: Path, without: tuple[str, ...] = ()) -> list[str]:
    """Words inside the braces of ``dataflow_graph { … }``."""
    lines = [re.sub(r"#.*", "", line) for line in path.read_text().splitlines()]
    words = " ".join(line for line in lines if line.split(":")[0].strip() not in without).split()
    return list(_inside(words[words.index("dataflow_graph") + 1 :]))


def _inside(words: list[str]) -> Iterator[str]:
    depth = 0
    for word in words:
        depth += {"{": 1, "}": -1}.get(word, 0)
        if depth == 0:
            return
        if word != "{" or depth > 1:
            yield word


def edges(graph: schema.Dataflow_Graph) -> list[tuple[int, int]]:
    return [(connection.startIdx, connection.endIdx) for connection in graph.connections]


def flop_of(graph: schema.Dataflow_Graph, *, of_gemms: bool = False) -> int:
    kernels = [kernel for kernel in graph.kernels if not of_gemms or kernel.type == schema.SYSTOLIC]
    total = 0
    for variant in map(variant_of, kernels):
        elements = variant.outer * variant.M * variant.N * max(1, variant.num_input)
        total += 2 * variant.K * elements if isinstance(variant, Gemm) else elements
    return total


def test_every_published_graph_has_arguments() -> None:
    assert set(PUBLISHED) == set(json.loads((DESIGNS / "cases.json").read_text()))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_graph_is_generated_word_for_word(name: str) -> None:
    generator, arguments = PUBLISHED[name]

    assert text_of(WORKLOADS[generator].generate(arguments)).split() == words_of_graph(DESIGNS / f"{name}.txt")


def test_solved_decode_graph_is_generated_but_for_what_was_solved() -> None:
    graph = llm_decode(hidden=768, num_head=12, head_dim=64, word=2, window=4096, tensor_parallel=16)

    generated = re.sub(r"\n *config: -1", "", text_of(graph)).split()
    assert generated == words_of_graph(SOLVED_DECODE, without=SOLVED_FIELDS)


def test_design_text_wraps_the_graph(tmp_path: Path) -> None:
    graph = fft(length=1024, word=2)
    path = tmp_path / "setup.txt"
    path.write_text(design_text(graph))

    assert words_of_graph(path) == text_of(graph).split()


def test_sizes_are_the_shortest_text_of_32_bit_numbers() -> None:
    text = text_of(hpl(n=1048576, b=2048, word=2, iterations=1))

    assert "input_tensor_1_size: 4294967300.0\n" in text  # 1048576 * 2048 * 2 = 4294967296


def test_sizes_beyond_32_bit_numbers_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"kernel 'Add_Prev_Layer': found \d+ bytes against at most 3.403e\+38 in a file"
    ):
        text_of(llm_forward(hidden=2**60, seq=2**60, num_head=1, head_dim=2**60, word=2**30))


def test_flop_of_a_layer() -> None:
    s, h = 2048, 25600
    forward, training = llm_forward(**LLM_1T), llm_training(**LLM_1T)

    assert flop_of(forward, of_gemms=True) == 24 * s * h**2 + 4 * s**2 * h
    assert flop_of(training, of_gemms=True) == 72 * s * h**2 + 12 * s**2 * h
    assert flop_of(mamba_scan(seq=262144, hidden=32, word=2)) == 1937768448  # as logged


def test_backward_half_depends_on_saved_activations_only() -> None:
    graph = llm_training(**LLM_1T)
    backward = [kernel.fwd_bwd == schema.BWD for kernel in graph.kernels]
    joining = [(a, b) for a, b in edges(graph) if backward[a - 1] != backward[b - 1]]

    assert backward == [False] * 18 + [True] * 23
    assert [a for a, _ in joining] == [5, 8, 4, 3, 15, 13, 9, 2, 2, 2]
    assert all(not backward[a - 1] for a, _ in joining)


def test_layers_follow_one_another() -> None:
    layer = llm_forward(hidden=8, seq=4, num_head=2, head_dim=4, word=2)
    graph = llm_forward(hidden=8, seq=4, num_head=2, head_dim=4, word=2, layers=3)

    assert len(graph.kernels) == 54
    assert len({kernel.name for kernel in graph.kernels}) == 54
    assert graph.kernels[20].name == "Q_layer_2"
    assert flop_of(graph) == 3 * flop_of(layer)
    within = [(a + 18 * step, b + 18 * step) for step in range(3) for a, b in edges(layer)]
    assert sorted(edges(graph)) == sorted([*within, (18, 19), (36, 37)])
    assert [connection.id for connection in graph.connections] == list(range(1, 3 * 21 + 3))


def test_feed_forward_dimension_is_free() -> None:
    graph = llm_training(hidden=8, seq=4, num_head=2, head_dim=4, word=2, mlp_dim=20)
    gemms = {kernel.name: variant_of(kernel) for kernel in graph.kernels if kernel.type == schema.SYSTOLIC}
    dimensions = {name: (one.M, one.K, one.N) for name, one in gemms.items() if isinstance(one, Gemm)}

    assert dimensions["FFN0"] == (20, 8, 4)
    assert dimensions["FFN1"] == (8, 20, 4)
    assert dimensions["FFN1_bwd_weight_update"] == (20, 4, 8)


def test_caches_stay_or_stream() -> None:
    resident, streamed = (
        llm_decode(hidden=8, num_head=2, head_dim=4, word=2, window=16, tensor_parallel=2, cache=cache)
        for cache in ("resident", "streamed")
    )

    caches = [graph.kernels[5].elementwise_input1 for graph in (resident, streamed)]
    assert [(cache.N, cache.memory_size) for cache in caches] == [(16, 128), (17, 128)]
    assert [(cache.sram_extra, cache.dram_extra) for cache in caches] == [(128, 128), (0, 0)]
    empty = [[(c.startIdx, c.endIdx) for c in g.connections if c.zero_out] for g in (resident, streamed)]
    assert empty == [[(6, 8), (7, 11)], []]


def test_shares_that_are_no_integers_are_fractions() -> None:
    graph = llm_decode(hidden=8, num_head=2, head_dim=4, word=2, window=16, tensor_parallel=3)

    assert graph.kernels[5].elementwise_input1.memory_size == pytest.approx(256 / 3)


def test_recommendation_model_exchanges_embeddings_once_each_way() -> None:
    graph = dlrm_training(
        mlp_dim=8, bottom_num_mlp=2, top_num_mlp=1, pooled_row=3, num_table=5, emb_dim=7, micro_batch_size=11, word=2
    )
    exchanging = {
        kernel.name: variant_of(kernel).communication_size
        for kernel in graph.kernels
        if variant_of(kernel).communication_type == schema.ALL_TO_ALL
    }

    assert exchanging == {"MLP_2": 5 * 3 * 7 * 11 * 2, "MLP_2_bwd": 5 * 3 * 7 * 11 * 2}
    names = [kernel.name for kernel in graph.kernels]
    update_inputs = [(names[a - 1], names[b - 1]) for a, b in edges(graph) if "update" in names[b - 1]]
    assert update_inputs == [
        ("MLP_1", "MLP_2_bwd_weight_update"),
        ("MLP_2", "MLP_3_bwd_weight_update"),
        ("MLP_3_bwd", "MLP_2_bwd_weight_update"),
        ("MLP_2_bwd", "MLP_1_bwd_weight_update"),
    ]


def test_factorisation_ends_with_the_matrix() -> None:
    graph = hpl(n=10, b=4, word=2)

    assert [variant_of(kernel).M for kernel in graph.kernels] == [10, 6, 2]
    assert edges(graph) == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("side", "radix", "expected"), [(9, 3, 24), (2**20, 32, 512), (2**31 - 1, 2, 247), (1000, 10, 120)]
)
def test_butterflies_of_powers_and_their_neighbours_are_exact(side: int, radix: int, expected: int) -> None:
    assert butterfly_products(side, radix) == expected


def test_butterfly_products_are_the_exact_floor() -> None:
    for side in range(2, 60):
        for radix in range(2, min(side, 9) + 1):
            products = butterfly_products(side, radix)
            assert radix**products <= side ** (4 * radix) < radix ** (products + 1)


def test_scan_has_a_stage_per_doubling() -> None:
    graphs = [mamba_scan(seq=seq, hidden=4, word=2) for seq in (2, 8, 9)]

    stages = [[k.name for k in graph.kernels if k.name.startswith("Scan")] for graph in graphs]
    assert [len(names) for names in stages] == [1, 3, 4]
    for graph in graphs:
        assert all(a < b for a, b in edges(graph))
        assert all(b.id == a.id + 1 for a, b in pairwise(graph.connections))
