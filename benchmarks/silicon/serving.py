"""Served language models on H100, H200 and B200: time per output token and to the first token, beside ours.

`serving.csv` has the rows of `silicon_sample.csv` of the wheel `aiconfigurator-core` 0.12.0 (Apache-2.0) that are of
H100 or H200, on at most 8 chips that do both prompts and answers, of models that `dfcompile llm` reads, without
replicas of attention; ``suite`` is of rows whose source is a table of InferenceMAX. No calibration has seen one of
them. Where the first token takes longer than the whole answer there were more users than places: how many were served
at once such a row does not say.

`serving_b200.csv` has those of Llama-3.1-70B in FP8 on B200: nothing here was chosen with them in view.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.model import Model
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case, Deployment, Deployments
from dfcompile.language_models.serving import Batching, Load, Seconds, Served, decodes, readings, served, total
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.kernel import Kernel, StepChoices, Work
from dfcompile.language_models.times.calibrated import find_calibration
from dfcompile.language_models.times.step_time import KernelTime, roofline
from dfcompile.records import replace

ROWS = Path(__file__).parent / "serving.csv"
UNSEEN = Path(__file__).parent / "serving_b200.csv"
FRAMEWORKS = ("trtllm", "vllm", "sglang")
FEW_USERS = 4  # up to which the time to the first token is judged: beyond, it is the waiting of the benchmark's start
# What InferenceMAX states of its rows (github.com/SemiAnalysisAI/InferenceX, benchmarks/): lengths are uniform from
# eight tenths to all of the stated ones; every user sends ten requests, all users the first one at once.
SUITE_TENTHS, SUITE_REQUESTS = 9, 10
# One of its scripts lets clients send that many requests at once to servers with as many places as the sweep has users,
# which are 4 to 64: such rows do not say how many. Their users wait 4.2 to 4.9 answers, as ten requests a place would.
SUITE_CAP = 512
# Batches that wait 20 steps for more prompts (batch_wait_timeout_iters), of Llama-3.1-70B under TensorRT-LLM with 1,024
# tokens each on less than 8 chips (70b_fp8_h200_trt_slurm.sh).
BATCH_WAIT = 20
# The host issues the kernels of a step with prompts one by one under SGLang and TensorRT-LLM: DeepSeek-V3's in 82.6 ms
# for a single token, where a captured step takes 23.1 (github.com/sgl-project/sglang/pull/12160).
ISSUED_ONE_BY_ONE = ("sglang", "trtllm")
ISSUE_S = 0.0826 / 1146
GOLDEN = (5**0.5 - 1) / 2
FIRST = f"first token, at most {FEW_USERS} users, % (rows)"
HEADING = (
    f"| rows | count | roofline, % | decodes alone, % | with prefills of others, % | bias, % | {FIRST} |",
    "|---|---:|---:|---:|---:|---:|---:|",
)
HELD = 0.9  # of a chip's memory, which frameworks fill with weights and caches by default
_BLOCKS = NumberFormat("fp8", 8, group=128 * 128, scale_bits=32)
_FORMS = {
    "bf16": FORMATS["bf16"],
    "fp8": FORMATS["fp8"],
    "fp8_block": _BLOCKS,
    "nvfp4": FORMATS["mxfp4"],  # of gpt-oss: Hopper has no arrays for four bits, its checkpoint is MXFP4
    "int4_wo": FORMATS["int4"],
}
_IN_BLOCKS = ("deepseek-ai", "Qwen/Qwen3-235B-A22B-FP8")  # checkpoints whose own configuration says so


@dataclass(frozen=True, slots=True)
class Row:
    """A measured row; times in milliseconds."""

    model: str
    checkpoint: str
    system: str
    framework: str
    version: str
    weights: str
    experts: str
    prompt: int
    answer: int
    users: int
    tensor: int
    expert: int
    ttft_ms: float
    tpot_ms: float
    suite: str = ""

    @property
    def kind(self) -> str:
        """Under which it is counted."""
        return "experts" if self.experts else f"dense {self.weights.partition('_')[0]}"

    @property
    def is_capped(self) -> bool:
        """Whether the users it states are the most that clients send at once, not those who are served."""
        return bool(self.suite) and self.users == SUITE_CAP

    @property
    def is_waiting(self) -> bool:
        """Whether there were more users than places."""
        return self.ttft_ms > self.answer * self.tpot_ms

    @property
    def precision(self) -> Precision:
        """Formats: the head, routers and norms stay; TensorRT-LLM and NVIDIA's checkpoints have caches in FP8."""
        wide = FORMATS["bf16"]
        weights, experts = (_FORMS[name] for name in (self.weights, self.experts or self.weights))
        if self.checkpoint.startswith(_IN_BLOCKS):
            weights = experts = _BLOCKS
        if self.weights in ("nvfp4", "int4_wo"):
            weights = wide  # of attention
        narrow = weights == FORMATS["fp8"] and (self.framework == "trtllm" or self.checkpoint.startswith("nvidia"))
        narrow |= bool(self.suite) and weights.name == "fp8" and self.framework != "sglang"  # as its scripts ask for
        return Precision(
            attention=weights,
            mlp=weights,
            experts=experts,
            router=wide,
            embedding=wide,
            head=wide,
            activations=FORMATS["fp8"] if weights.name == "fp8" else wide,
            kv=FORMATS["fp8"] if narrow else wide,
            vectors=wide,
        )

    @property
    def load(self) -> Load:
        """What was served: SGLang reads prompts in steps of their own, the others beside decodes.

        Answers of one length end at once where all users began at once, which those of the suite do not.
        """
        apart = self.framework == "sglang"
        batching = Batching.APART if apart else Batching.MIXED
        tenths = SUITE_TENTHS if self.suite else 10
        prompt, answer = (max(1, tokens * tenths // 10) for tokens in (self.prompt, self.answer))
        return Load(self.users, prompt, answer, batching, in_step=apart or not self.suite)

    @property
    def waited_steps(self) -> float:
        """Decodes that a request waits for in the mean: users come when a step has begun and the next is prepared.

        Whose answers end together wait for the prepared step alone; the suite's first requests wait for nothing.
        """
        if not self.suite:
            return 1
        is_llama = self.framework == "trtllm" and self.model == "llama-3.1-70b"
        is_delayed = is_llama and self.prompt == self.answer == 1024 and self.tensor < 8
        return (2 + BATCH_WAIT * is_delayed) * (1 - 1 / SUITE_REQUESTS)

    @property
    def is_narrowed(self) -> bool:
        """Whether weights were made FP8 as they were loaded, so that no scale of activations is known before."""
        return self.weights == "fp8" and not self.suite and "FP8" not in self.checkpoint

    def stored(self, kernel: Kernel) -> str:
        """Return how a kernel's weights are stored, by which its class is known; some formats have two kernels."""
        if kernel.stored == "fp8" and kernel.work is Work.GEMM and self.is_narrowed:
            return "fp8_dynamic"
        # The suite asks vLLM for Marlin's experts on Hopper since 0.13 (VLLM_MXFP4_USE_MARLIN, perf-changelog.yaml).
        is_marlin = self.suite and self.framework == "vllm" and self.version >= "0.13"
        is_expert = kernel.stored == "mxfp4" and kernel.work is Work.EXPERTS
        return "mxfp4_marlin" if is_marlin and is_expert else kernel.stored


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row, and what is bounded and estimated of it, in milliseconds."""

    row: Row
    bound_ms: float
    roofline_ms: float
    decode_ms: float
    tpot_ms: float
    ttft_ms: float

    @property
    def error(self) -> float:
        """Of the time per output token, relative."""
        return self.tpot_ms / self.row.tpot_ms - 1

    @property
    def first_error(self) -> float:
        """Of the time to the first token, relative."""
        return self.ttft_ms / self.row.ttft_ms - 1


def rows(path: Path = ROWS) -> list[Row]:
    """Read the measured rows."""
    return [msgspec.convert(one, Row, strict=False) for one in csv.DictReader(path.read_text().splitlines())]


@cache
def _model(name: str) -> Model:
    return read_model(name)


def _case(row: Row, calibration: str, precision: Precision) -> Callable[[Batch], Deployment]:
    """Return what makes the steps of a row: by a calibration, or by the roofline if it has no name."""
    device = replace(shipped_devices()[row.system], capacity_bytes=0)  # they ran, whatever they held
    found = find_calibration(calibration) if calibration else None
    timer, reduced = (found.seconds, found.all_reduce) if found else (roofline, None)

    def seconds(kernel: Kernel, device: Device) -> KernelTime:
        return timer(replace(kernel, stored=row.stored(kernel)), device)

    def deployed(batch: Batch) -> Deployment:
        case = Case(_model(row.model), batch, device, precision, StepChoices(), seconds, reduced)
        step = Deployments(case, row.tensor).deployed(Degrees(tensor=row.tensor, expert=row.expert))
        if not found or batch.is_decode or row.framework not in ISSUED_ONE_BY_ONE:
            return step
        issued = sum(one.kernel.count * one.kernel.launches for one in step.kernels.kernels)
        return replace(step, exec_s=max(step.exec_s, ISSUE_S * issued))

    return deployed


def _served(row: Row, deployed: Callable[[Batch], Deployment]) -> Served:
    """Return what users see, of whom as many are served at once as caches find room; the others wait for a place."""
    load = row.load

    def seconds(batch: Batch) -> float:
        return deployed(batch).exec_s

    held = deployed(Batch("held", decodes(load, load.users)))
    room = HELD * shipped_devices()[row.system].capacity_bytes - held.weight_bytes
    places = max(1, min(load.users, int(room * load.users / held.kv_bytes)))
    placed = replace(load, users=places)
    found = served(placed, seconds)
    first = first_token_s(placed, found.tpot_s, seconds) if row.suite else found.ttft_s
    waits = (load.users - places) / places * (first + load.later * found.tpot_s)
    return replace(found, ttft_s=first + waits + (row.waited_steps * found.decode_s if places > 1 else 0.0))


def first_token_s(load: Load, tpot_s: float, seconds: Seconds) -> float:
    """Return the mean seconds to the first token of users of the suite.

    All begin at once, and their answers are not of one length but near each other, so that they meet again and again:
    whoever asks while prompts are read waits. As many prompts are read together as a step has room for.
    """
    most = max(1, load.chunk // load.prompt)

    @cache
    def read_s(prompts: int) -> float:
        group = replace(load, users=prompts, batching=Batching.APART, in_step=True)
        return total(readings(group, 0), seconds)

    asking, now, taken = [(0.0, user, 0) for user in range(load.users)], 0.0, list[float]()
    while asking:
        now = max(now, asking[0][0])
        group = [heappop(asking)]
        while asking and asking[0][0] <= now and len(group) < most:
            group.append(heappop(asking))
        now += read_s(len(group))
        taken += (now - since for since, _, _ in group)
        for _, user, number in group:
            if number + 1 < SUITE_REQUESTS:
                drawn = (user * SUITE_REQUESTS + number) * GOLDEN % 1  # evenly spread, whatever their number
                answer = load.answer * (8 + 2 * drawn) / SUITE_TENTHS
                heappush(asking, (now + answer * tpot_s, user, number + 1))
    return sum(taken) / len(taken)


def compared(row: Row, framework: str = "", calibration: str = "") -> Comparison:
    """Return the bound of a row and its estimates, by the calibration of its framework, of another one, or a file's."""
    load, name = row.load, calibration or f"{row.system.partition('-')[0]}-{framework or row.framework}"
    least = decodes(load, 1 if row.is_waiting else row.users)  # how many were served at once is not known then
    narrowest = replace(row.precision, kv=row.precision.activations)  # rows do not say how wide caches are
    bound = _case(row, "", narrowest)(Batch("bound", least)).kernels.overlap_s
    found, peak = (_served(row, _case(row, one, row.precision)) for one in (name, ""))
    times = (bound, peak.tpot_s, found.decode_s, found.tpot_s, found.ttft_s)
    return Comparison(row, *(1e3 * one for one in times))


def mean(values: Sequence[float]) -> float:
    """Return the mean of absolute values, in percent."""
    return 100 * sum(map(abs, values)) / len(values) if values else 0.0


def _line(name: str, found: Sequence[Comparison]) -> str:
    few = [one.first_error for one in found if one.row.users <= FEW_USERS]
    bias = 100 * sum(one.error for one in found) / len(found)
    alone = mean([one.decode_ms / one.row.tpot_ms - 1 for one in found])
    peak = mean([one.roofline_ms / one.row.tpot_ms - 1 for one in found])
    first = f"{mean(few):.1f} ({len(few)})" if few else ""
    error = mean([one.error for one in found])
    return f"| {name} | {len(found):,} | {peak:.1f} | {alone:.1f} | {error:.1f} | {bias:+.1f} | {first} |"


def _more_users(found: Sequence[Comparison]) -> str:
    """Return errors of first tokens where users all have a place."""
    parts = []
    for least, most in ((FEW_USERS + 1, 16), (17, 64), (65, 512)):
        errors = [one.first_error for one in found if least <= one.row.users <= most and not one.row.is_waiting]
        parts.append(f"{least} to {most} {mean(errors):.1f} % ({len(errors)} rows)")
    return ", ".join(parts)


def unseen() -> Iterator[str]:
    """Yield the part of the page of rows that were not in view."""
    found = [compared(row) for row in rows(UNSEEN)]
    held = sum(one.bound_ms <= one.row.tpot_ms for one in found)
    yield from (f"Bound <= measured in {held:,} of {len(found):,} rows.", "", *HEADING, _line("all", found))
    for framework in FRAMEWORKS:
        if any(one.row.framework == framework for one in found):
            yield _line(framework, [one for one in found if one.row.framework == framework])


def page(every: int = 1) -> Iterator[str]:
    """Yield the part of the page: how many bounds hold, and errors of all rows, kinds, models and frameworks."""
    found = [compared(row) for row in rows()[::every]]
    stated = [one for one in found if not one.row.is_capped]
    held = sum(one.bound_ms <= one.row.tpot_ms for one in found)
    yield f"Bound <= measured in {held:,} of {len(found):,} rows."
    for one in found:
        if one.bound_ms > one.row.tpot_ms:
            row = one.row
            degrees = f"TP{row.tensor}" + (f" EP{row.expert}" if row.expert > 1 else "")
            yield (
                f"* above: {row.model} {row.weights}, {row.system} {degrees}, {row.framework}, {row.prompt} + "
                f"{row.answer} tokens, {row.users} users: bound {one.bound_ms:.2f} ms, measured {row.tpot_ms:.2f} ms"
            )
    yield from ("", *HEADING)
    yield _line("all", found)
    yield _line("all that say how many are served", stated)
    yield _line("of these, all whose users all have a place", [one for one in stated if not one.row.is_waiting])
    for kind in sorted({one.row.kind for one in stated}):
        yield _line(kind, [one for one in stated if one.row.kind == kind])
    for model in sorted({one.row.model for one in stated}):
        yield _line(model, [one for one in stated if one.row.model == model])
    for framework in FRAMEWORKS:
        yield _line(framework, [one for one in stated if one.row.framework == framework])
    yield from ("", f"First tokens of more users: {_more_users(stated)}.", "")
    yield "| calibration of | " + " | ".join(f"rows of {name}, %" for name in FRAMEWORKS) + " |"
    yield "|---" + "|---:" * len(FRAMEWORKS) + "|"
    for used in FRAMEWORKS:
        errors = (
            mean([compared(one.row, used).error if used != name else one.error for one in stated
                  if one.row.framework == name])
            for name in FRAMEWORKS
        )  # fmt: skip
        yield f"| {used} | " + " | ".join(f"{error:.1f}" for error in errors) + " |"
