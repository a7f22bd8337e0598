"""Kernels and times of the default mode, row by row; traps that the notebook fell into."""

import csv
import math
from pathlib import Path

import pytest

from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.steps.batch import Batch, Sequences, chunked_batch, decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import Fusion, Kernel, Latent, StepChoices, Work
from dfcompile.language_models.steps.step import Step, layer_kernels, step_of
from dfcompile.language_models.times.step_time import Transfers, roofline, timed_step

DATA = Path(__file__).parents[3] / "data" / "llm"
LLAMA, DEEPSEEK = read_model("llama-3.1-8b"), read_model("deepseek-v3")
BF16 = uniform(FORMATS["bf16"])
BATCHES = {
    "prefill_1024_b1": prefill_batch("1024"),
    "prefill_8192_b1": prefill_batch("8192"),
    "decode_ctx8448_b256": decode_batch("8448x256"),
    "chunked_p241_past3975_d15_ctx8448": chunked_batch("8192:512:256"),
}


def made(batch: Batch, choices: StepChoices | None = None) -> Step:
    return step_of(LLAMA, batch, BF16, choices or StepChoices())


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((DATA / name).read_text().splitlines()))


def close(found: float, expected: str) -> bool:
    return math.isclose(found, float(expected), rel_tol=1e-12)


def test_every_row_of_the_default_mode() -> None:
    reference = rows("default_mode_kernels.csv")
    for arch, device in shipped_devices().items():
        for scenario, batch in BATCHES.items():
            expected = [row for row in reference if (row["arch"], row["scenario"]) == (arch, scenario)]
            if arch not in ("NVL-AX", "JGS"):
                continue
            for one, row in zip(timed_step(made(batch).kernels, device, roofline).kernels, expected, strict=True):
                kernel = one.kernel
                assert [kernel.kind, kernel.name] == [row["type"], row["name"]]
                assert [
                    kernel.count, kernel.m, kernel.k, kernel.n, kernel.batch, kernel.macs, kernel.weight_bytes,
                    kernel.act_in_bytes, kernel.act_out_bytes, kernel.kv_read_bytes, kernel.kv_write_bytes,
                    kernel.bytes,
                ] == [int(float(row[key])) for key in list(row)[4:16]]  # fmt: skip
                assert close(one.time.compute_s, row["compute_s"])
                assert close(one.time.memory_s, row["memory_s"])
                assert close(one.time.exec_s, row["time_s"])
                assert one.time.bound == row["bound"]


def test_every_total_of_the_default_mode() -> None:
    for row in rows("default_mode_totals.csv"):
        step = made(BATCHES[row["scenario"]])
        found = timed_step(step.kernels, shipped_devices()[row["arch"]], roofline)

        assert [step.total(name) for name in ("macs", "bytes", "kv_read_bytes", "weight_bytes")] == [
            int(row[key]) for key in ("macs", "bytes", "kv_read_bytes", "weight_bytes")
        ]
        assert close(found.exec_s, row["time_kernel_serial_s"])
        assert close(found.overlap_s, row["time_full_overlap_s"])
        assert close(found.compute_s, row["compute_s"])
        assert close(found.memory_s, row["memory_s"])


def named(step: Step, name: str) -> Kernel:
    return next(kernel for kernel in step.kernels if kernel.name == name)


def test_trap_t2_attention_is_a_product_per_head_of_keys() -> None:
    attention = named(made(BATCHES["prefill_8192_b1"]), "attention_prefill")

    assert (attention.m, attention.k, attention.n, attention.batch) == (4 * 8192, 128, 8192, 8)
    assert attention.kv_read_bytes == 8192 * 2 * 8 * 128 * 2


def test_trap_t3_decodes_see_their_whole_context() -> None:
    chunk = made(BATCHES["chunked_p241_past3975_d15_ctx8448"])

    assert named(chunk, "attention_decode").macs == 2 * 519_045_120


def test_trap_t9_the_cache_is_read_once_and_per_sequence() -> None:
    for sequences in (1, 4, 256):
        step = made(decode_batch(f"8448x{sequences}"))

        assert step.total("kv_read_bytes") == sequences * 8448 * 131_072


def test_trap_t10_and_t11_a_batch_makes_rows_and_results_are_written() -> None:
    qkv = named(made(BATCHES["decode_ctx8448_b256"]), "qkv_proj")

    assert (qkv.m, qkv.batch, qkv.weight_bytes) == (256, 1, 4096 * 6144 * 2)
    assert qkv.act_out_bytes == 256 * 6144 * 2


def test_trap_t14_and_t28_causal_flash_attention_is_the_default() -> None:
    batch = BATCHES["prefill_8192_b1"]
    unfused = made(batch, StepChoices(flash=False))

    assert made(batch).macs == 65_972_296_744_960
    assert made(batch, StepChoices(causal=False)).macs == 74_767_316_025_344
    assert unfused.macs == made(batch).macs
    assert named(unfused, "attention_prefill_softmax").act_in_bytes == 8192**2 * 32 * 2
    assert unfused.total("bytes") / 1e9 == pytest.approx(647.6, abs=0.05)


def test_trap_t15_and_t16_every_kernel_of_every_layer_counts() -> None:
    step = made(BATCHES["decode_ctx8448_b256"])

    assert step.macs == 2_488_128_241_664
    assert {"embedding", "lm_head", "norms_residuals_act"} <= {kernel.name for kernel in step.kernels}
    assert named(step, "qkv_proj").count == 32


def test_trap_t21_transfers_are_hidden_as_far_as_there_is_room() -> None:
    device = shipped_devices()["NVL-AX"]
    long, chunk = (made(BATCHES[name]).kernels for name in ("prefill_8192_b1", "chunked_p241_past3975_d15_ctx8448"))
    hidden, exposed = (timed_step(kernels, device, roofline).parts[0] for kernels in (long, chunk))

    assert hidden.exposed_s == 0.0
    assert exposed.hidden_s == 0.0
    assert hidden.hidden_s > 0
    assert exposed.exposed_s > 0
    assert any(kernel.kv_write_bytes == 256 * 4096 for kernel in made(BATCHES["decode_ctx8448_b256"]).kernels)


@pytest.mark.parametrize("name", list(BATCHES))
@pytest.mark.parametrize("machine", ["NVL-AX", "JGS", "h100-sxm"])
def test_p1_overlap_is_never_below_the_bytes_and_each_policy_only_helps(name: str, machine: str) -> None:
    device, kernels = shipped_devices()[machine], made(BATCHES[name]).kernels
    sync, beside, ahead = (
        timed_step(kernels, device, roofline, policy)
        for policy in (Transfers.SYNC, Transfers.ASYNC, Transfers.PREFETCH)
    )

    assert sync.exec_s >= beside.exec_s * (1 - 1e-12)
    assert beside.exec_s >= ahead.exec_s * (1 - 1e-12)
    assert all(found.exec_s >= found.overlap_s * (1 - 1e-12) for found in (sync, beside, ahead))
    for part in beside.parts:
        room = part.serial_s - (part.memory_s - part.hidden_s - part.exposed_s)
        assert (part.exposed_s == 0) == (room >= part.hidden_s + part.exposed_s)


def test_trap_t25_every_operand_has_bytes() -> None:
    step = made(BATCHES["prefill_8192_b1"])

    assert all(kernel.act_in_bytes and kernel.act_out_bytes for kernel in step.kernels if kernel.work is Work.GEMM)
    assert named(step, "attention_prefill").bytes > 0


def test_fusion_takes_bytes_and_no_work() -> None:
    steps = [made(BATCHES["prefill_8192_b1"], StepChoices(fusion=fusion)) for fusion in Fusion]

    assert len({step.macs for step in steps}) == 1
    assert steps[0].total("bytes") > steps[1].total("bytes") > steps[2].total("bytes")
    device = shipped_devices()["NVL-AX"]
    assert timed_step(steps[2].kernels, device, roofline).exec_s == pytest.approx(0.4027, rel=0.01)


def test_n5_latents_are_absorbed_for_decodes_and_expanded_for_prompts() -> None:
    around = ("q_a_proj", "q_b_proj", "kv_a_proj", "o_proj", "gate_up", "down")

    def macs(group: Sequences, latent: Latent) -> int:
        kernels = layer_kernels(
            DEEPSEEK.layers[0], DEEPSEEK.hidden, Batch("", (group,)), BF16, StepChoices(latent=latent)
        )
        return sum(kernel.macs for kernel in kernels if kernel.name not in around)

    decode, prompt = Sequences(8447, 1), Sequences(0, 8192)
    naive, absorbed = (macs(decode, latent) for latent in (Latent.NAIVE, Latent.ABSORBED))
    ratio = macs(prompt, Latent.ABSORBED) / macs(prompt, Latent.NAIVE)

    assert (round(naive / 1e9, 1), round(absorbed / 1e9, 2)) == (142.1, 1.19)
    assert ratio == pytest.approx(3.2, abs=0.05)
    for batch, choice in ((decode_batch("8448x4"), Latent.ABSORBED), (prefill_batch("512"), Latent.NAIVE)):
        chosen = step_of(DEEPSEEK, batch, BF16, StepChoices())
        assert chosen.macs == step_of(DEEPSEEK, batch, BF16, StepChoices(latent=choice)).macs


@pytest.mark.parametrize("batch", [prefill_batch("512"), decode_batch("512")])
@pytest.mark.parametrize("name", ["deepseek-v3", "llama-3.1-8b"])
def test_attention_multiplies_at_the_rate_of_the_cache_where_that_is_wider_than_activations(
    name: str, batch: Batch
) -> None:
    narrow = with_dtypes(BF16, "w=fp8,a=fp8")
    rates = {
        kernel.rate
        for kernel in step_of(read_model(name), batch, narrow, StepChoices()).kernels
        if kernel.name.startswith("attention")
    }

    assert rates == {"bf16"}


@pytest.mark.parametrize("latent", list(Latent))
@pytest.mark.parametrize("batch", [decode_batch("600x3"), prefill_batch("70@20x2")])
def test_trap_t28_scores_of_latents_are_written_and_read_twice_as_all_others(latent: Latent, batch: Batch) -> None:
    model = read_model("deepseek-v3")
    whole, split = (
        step_of(model, batch, uniform(FORMATS["bf16"]), StepChoices(latent=latent, flash=flash))
        for flash in (True, False)
    )
    (group,) = batch.groups
    scores = 2 * 128 * group.new * group.context * group.count
    twice = 0 if latent is Latent.NAIVE or (latent is Latent.AUTO and not group.decodes) else 512
    again = 2 * twice * group.context * group.count  # both products read the latents of the cache

    assert split.macs == whole.macs
    assert split.total("bytes") - whole.total("bytes") == 61 * (4 * scores + again)
    elements = [sum(one.count * one.vector_elements for one in step.kernels) for step in (whole, split)]
    assert elements[0] == elements[1]


def test_a_decoded_token_of_every_model_at_4096() -> None:
    import json

    names = {theirs: ours for ours, theirs in json.loads((DATA / "names.json").read_text()).items()}
    for row in rows("param_kv_reference.csv"):
        step = step_of(read_model(names[row["model"]]), decode_batch("4096"), BF16, StepChoices())

        assert step.macs == int(row["macs_decode_token_ctx4096"]), row["model"]


def test_trap_t8_experts_are_read_as_often_as_tokens_touch_them() -> None:
    model = read_model("mixtral-8x7b")
    one, many = (step_of(model, decode_batch(f"128x{count}"), BF16, StepChoices()) for count in (1, 256))
    expert = 4096 * 2 * 14_336 * 2

    assert named(one, "expert_gate_up").weight_bytes == 2 * expert
    assert named(many, "expert_gate_up").weight_bytes == 8 * expert
    assert named(many, "expert_gate_up").macs == 2 * 256 * 4096 * 2 * 14_336


def test_a_shared_prefix_is_read_once() -> None:
    alone, shared = (
        made(decode_batch("1024x8"), StepChoices(shared_prefix=prefix)).total("kv_read_bytes") for prefix in (0, 1000)
    )

    assert alone - shared == 7 * 1000 * 131_072


def test_p6_formats_of_weights_and_caches_change_their_bytes_alone() -> None:
    batch = decode_batch("1024x8")
    small = step_of(LLAMA, batch, with_dtypes(BF16, "w=int4,kv=fp8"), StepChoices())
    whole = made(batch)

    assert small.total("kv_read_bytes") * 2 == whole.total("kv_read_bytes")
    assert named(small, "o_proj").weight_bytes == 4096 * 4096 // 2 + 4096 * 4096 // 128 * 2
    assert named(small, "o_proj").act_in_bytes == named(whole, "o_proj").act_in_bytes
    assert small.macs == whole.macs
    assert {kernel.rate for kernel in small.kernels} == {"bf16"}
