"""Figures of steps of a language model, and of serving and training plans: their meanings, the tables that show them.

And a study as plain values: JSON, and the rows of CSV; integers stay exact.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from dfcompile.language_models.energy import Activity, activity, link_activity, step_activity
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.parallel.training import TrainingStep
from dfcompile.language_models.planner import Plan
from dfcompile.language_models.study import StepStudy, Study
from dfcompile.language_models.times.step_time import TimedKernel
from dfcompile.records import replace
from dfcompile.report.figure import figure, filled, record
from dfcompile.report.plain_values import Json, rounded, to_record
from dfcompile.report.text_tables import binary, decimal, milliseconds

_usd = partial(figure, "where a price is known", heading="USD per\nM tokens", cell=",.4g", hidden=None, default=None)
_held = partial(figure, table="memory", cell=binary)


@record("chunks")
class ChunkFigures:
    """A step that fills in a piece of a prompt."""

    past: int = figure("tokens before it", heading="tokens\nbefore")
    new: int = figure("tokens of it", heading="tokens")
    time_s: float = figure("of the step", heading="time\n{}s")


@record("parts")
class PartFigures:
    """The layers of one kind on a chip."""

    part: str = figure("which")
    count: int = figure("layers", heading="count")
    time_s: float = figure("of one layer", of="exec_s", heading="each\n{}s")
    memory_s: float = figure("of all its bytes, those of transfers as well")
    transfers_hidden_s: float = figure("beside kernels", of="hidden_s", heading="transfers\nhidden {}s")
    transfers_exposed_s: float = figure("that find no room there", of="exposed_s", heading="transfers\nexposed {}s")


@record("kernels")
class KernelFigures:
    """A kernel of a chip, one run of it."""

    kind: str = figure("what the operands are")
    name: str = figure("of the kernel")
    part: str = figure("of the model")
    count: int = figure("runs in a step", heading="count")
    m: int = figure("rows of the first operand")
    k: int = figure("columns of the first, rows of the second")
    n: int = figure("columns of the second")
    batch: int = figure("products of that size")
    macs: int = figure("multiply-accumulates", heading="MACs", cell=decimal)
    weight_bytes: int = figure("read")
    act_in_bytes: int = figure("activations read")
    act_out_bytes: int = figure("activations written")
    kv_read_bytes: int = figure("of the cache")
    kv_write_bytes: int = figure("to the cache")
    offload_bytes: int = figure("of the cache, that come from a memory beside the chip's own")
    bytes: int = figure("all of them", heading="bytes", cell=binary)
    vector_elements: int = figure("that pass the vector unit")
    tile: str | None = figure("extents", heading="tile", after="bound", hidden=None, words=((None, ""),))
    compute_s: float = figure("of the multiply-adders", heading="compute\n{}s")
    memory_s: float = figure("of the memory that limits it", heading="memory\n{}s")
    time_s: float = figure("of both together", of="exec_s", heading="time\n{}s")
    time_cycles: float | None = figure("the same; `null` where the frequency is not known")
    bound: str = figure("what limits it", heading="bound by")
    activity: Mapping[str, float | None] = figure("share of the time that parts of the chip are busy", is_spread=True)


@record("chips")
class StepFigures:
    """A step on the chips that run it."""

    step: str = figure("its name", of="batch.name")
    tokens: int = figure("that go in", of="batch.tokens")
    sequences: int = figure("that they are of", of="batch.sequences")
    chips: int = figure("that run it", of="degrees.chips", heading="chips")
    degrees: str = figure("of parallelism", of="degrees.name", heading="degrees")
    degrees_tried: int = figure("that were looked at", of="tried", heading="tried")
    degrees_infeasible: int = figure("of them that do not fit", of="infeasible", heading="impossible")
    macs: int = figure("of all chips", heading="MACs", table="steps", cell=decimal, after="tokens_per_s_per_sequence")
    weight_read_bytes: int = figure("by the whole model")
    time_s: float = figure("of the step")
    assumptions: tuple[str, ...] = figure("that the time rests on")
    times: Mapping[str, float] = figure("by each way of counting", is_spread=True)
    full_overlap_s: float | None = figure("if all kernels of a chip overlap; `null` of several chips")
    exchange_s: float = figure("of collectives", heading="exchanges\nms", cell=milliseconds)
    stage_layers: tuple[int, ...] = figure("of each stage")
    tokens_per_s: float = figure("of all sequences", heading="tokens/s\n{}", table="steps")
    tokens_per_s_per_sequence: float = figure("in the mean", heading="per\nsequence", table="steps", cell=",.4g")
    mac_utilisation: float = figure("of the peak")
    memory_utilisation: float = figure("of the bandwidth")
    chip_weight_bytes: int = figure("at most", of="weight_bytes", heading="weights\nof a chip", cell=binary)
    chip_kv_bytes: int = figure("at most", of="kv_bytes", heading="cache\nof a chip", cell=binary)
    offload_share: float = figure("of caches, in a memory beside the chip's own", of="offload")
    chip_offload_bytes: int = figure(
        "there, at most", of="offload_bytes", heading="offloaded\nof a chip", cell=binary, hidden=0
    )
    activity: Mapping[str, float | None] = figure("share of the time that parts of a chip are busy")
    usd_per_million_tokens: float | None = _usd(table="steps")
    energy_j: float | None = figure("of all chips, where it is known", of="energy.total_j", default=None)
    energy_j_per_token: float | None = figure("the same of a token", default=None)
    chip_power_w: float | None = figure("in the mean", of="energy.power_w", default=None)
    is_throttled: bool | None = figure("whether the power limits it", of="energy.is_throttled", default=None)
    chunks: tuple[ChunkFigures, ...] = figure("that fill in a prompt", default=())
    parts: tuple[PartFigures, ...] = figure("of a chip", of="kernels.parts", default=())
    kernels: tuple[KernelFigures, ...] = figure("of a chip", default=())


def figures_of(study: Study) -> tuple[StepFigures, ...]:
    """Return the figures of all steps of a study."""
    return tuple(_step_figures(study, step) for step in study.steps)


def _step_figures(study: Study, step: StepStudy) -> StepFigures:
    one, device, chunks = step.deployment, study.device, zip(step.batch.chunks, step.chunk_s, strict=False)
    runs, peak = one.degrees.micro_batches, device.rate(study.precision.activations.name)
    busy = step_activity(one.kernels, device, step.exec_s, runs)
    links = link_activity(one.link_bytes, one.link_bytes_per_s, step.exec_s)
    return filled(
        StepFigures,
        one,
        step,
        weight_read_bytes=step.weight_bytes,
        time_s=step.exec_s,
        times={f"{way.value}_s": seconds for way, seconds in step.times.items()},
        full_overlap_s=one.kernels.overlap_s if one.degrees.chips == 1 else None,
        mac_utilisation=step.macs / (one.degrees.chips * peak * step.exec_s),
        memory_utilisation=runs * one.kernels.memory_s / step.exec_s,
        activity=_shares(replace(busy, links=links)),
        usd_per_million_tokens=step.usd_per_million_tokens or None,
        energy_j_per_token=None if step.energy is None else step.energy.total_j / step.batch.tokens,
        chunks=tuple(ChunkFigures(chunk.groups[0].past, chunk.groups[0].new, seconds) for chunk, seconds in chunks),
        kernels=tuple(kernel_figures(device, kernel) for kernel in one.kernels.kernels),
    )


def kernel_figures(device: Device, one: TimedKernel) -> KernelFigures:
    """Return the figures of a kernel on a device."""
    shares, frequency = _shares(activity(one.kernel, one.time, device)), device.frequency_hz
    return filled(
        KernelFigures,
        one.kernel,
        one.time,
        tile=one.time.tile or None,
        time_cycles=one.time.exec_s * frequency if frequency else None,
        activity={f"{name}_activity": share for name, share in shares.items() if name != "link"},  # of exchanges alone
    )


def _shares(found: Activity) -> dict[str, float | None]:
    named = {"mac": found.macs, "memory": found.memory, **found.levels}
    return {**named, "vector": found.vector, "offload": found.offload, "link": found.links}


Record = dict[str, Json]

FORMAT: Final = "dfcompile-language-model/1"


def study_record(study: Study, sweep: Sequence[Mapping[str, Json]] = (), mapped: Sequence[Record] = ()) -> Record:
    """Return all of a study as plain values; times in seconds, sizes in bytes or elements."""
    model, parameters, device = study.model, study.parameters, study.device
    record: Record = {
        "format": FORMAT,
        "model": {
            "name": model.name,
            "model_type": model.model_type,
            "layers": [{"kind": kind.name, "count": kind.count} for kind in model.kinds],
            "parameters": parameters.total,
            "active_parameters": parameters.active,
            "active_parameters_without_input_embedding": parameters.active_without_lookup,
            "weight_bytes": study.weight_bytes,
            "kv_bytes_per_token": study.kv_bytes_per_token,
            "state_bytes_per_sequence": study.state_bytes_per_sequence,
            "encoder_tokens": model.encoder_tokens,
            "encoder_kv_bytes": study.encoder_kv_bytes,
            "formats": study.precision.summary,
        },
        "system": {
            "name": device.name,
            "macs_per_s": {form: rounded(rate) for form, rate in device.macs_per_s.items()},
            "bytes_per_s": rounded(device.bytes_per_s),
            "capacity_bytes": device.capacity_bytes or None,
        },
        "counted_by": study.request.time.value,
        "steps": [to_record(step) for step in figures_of(study)],
        "notes": list(study.notes),
        "warnings": list(study.warnings),
    }
    if sweep:
        record["sweep"] = [dict(row) for row in sweep]
    if mapped:
        record["mapped"] = list(mapped)
    return record


def study_rows(study: Study) -> list[dict[str, Json]]:
    """Return a row per kernel of all steps."""
    kernels = ((step.step, kernel) for step in figures_of(study) for kernel in step.kernels)
    return [{"system": study.device.name, "step": step, **to_record(kernel)} for step, kernel in kernels]


@record("plans")
class PlanFigures:
    """A choice of degrees and of how prompts are read, and what users see."""

    degrees: str = figure("of parallelism, of the chips that answer", of="degrees.name", heading="degrees")
    prompts: str = figure("how they are read", of="name", heading="prompts")
    chips: int = figure("of both", heading="chips")
    replica_users: int = figure("at once on a replica", of="load.users", heading="users per\nreplica")
    ttft_s: float = figure("to the first token", of="served.ttft_s", heading="TTFT\n{}s")
    tpot_s: float = figure("between two later tokens, in the mean", of="served.tpot_s", heading="TPOT\n{}s")
    is_queued: bool = figure("whether prompts wait for each other", of="served.is_queued")
    tokens_per_s: float = figure("of answers, of all users")
    tokens_per_s_per_chip: float = figure(
        "likewise, of a chip", of="per_chip", heading="tokens/s\nper chip", cell=",.4g"
    )
    tokens_per_s_per_user: float = figure("likewise, of a user", heading="tokens/s\nper user", cell=",.4g")
    energy_j_per_token: float | None = figure(
        "of all chips, where it is known", heading="J per\ntoken", cell=",.4g", hidden=None, default=None
    )
    usd_per_million_tokens: float | None = _usd()


def plan_figures(plans: tuple[Plan, ...], usd_per_chip_hour: float) -> tuple[PlanFigures, ...]:
    """Return the figures of plans; a price of 0 is not known."""
    return tuple(
        filled(
            PlanFigures,
            plan,
            tokens_per_s_per_user=plan.tokens_per_s / (plan.load.users * plan.degrees.data),
            usd_per_million_tokens=usd_per_chip_hour / 3600 / plan.per_chip * 1e6 or None,
        )
        for plan in plans
    )


@record("plans")
class TrainingFigures:
    """A training step on the chips that run it; seconds but for the step are those of the slowest stage."""

    degrees: str = figure("of parallelism", of="degrees.name", heading="degrees", table=("plans", "times", "memory"))
    chips: int = figure("that run it", of="degrees.chips", heading="chips")
    micro_batch_sequences: int = figure("of a micro-batch", heading="micro-\nbatch")
    time_s: float = figure("of the step", of="exec_s", heading="step\n{}s", table=("plans", "times"))
    tokens_per_s_per_chip: float = figure("that are trained", heading="tokens/s\nper chip", cell=",.4g")
    mac_utilisation: float = figure(
        "of the peak, by three times the multiply-accumulates of the forward pass", heading="peak", cell=".1%"
    )
    forward_s: float = figure("of forward passes", heading="forward\n{}s", table="times")
    recompute_s: float = figure(
        "of what backward passes compute again", heading="again\n{}s", table="times", hidden=0.0
    )
    backward_s: float = figure("of gradients", heading="backward\n{}s", table="times")
    exchange_s: float = figure("of sums and sends within passes", heading="exchanges\n{}s", table="times")
    bubble_s: float = figure("while the pipeline fills and drains", heading="bubble\n{}s", table="times")
    gradients_s: float = figure("of the exchange of gradients", heading="gradients\n{}s", table="times")
    optimiser_s: float = figure("of the update", heading="update\n{}s", table="times")
    stage_layers: tuple[int, ...] = figure("of each stage")
    weight_bytes: int = _held("of the fullest chip", of="held.weights", heading="weights")
    gradient_bytes: int = _held("likewise", of="held.gradients", heading="gradients")
    optimiser_bytes: int = _held("likewise: moments, and weights in 4 bytes", of="held.optimiser", heading="optimiser")
    activation_bytes: int = _held(
        "likewise: of all micro-batches in flight", of="held.activations", heading="activations"
    )
    working_bytes: int = _held(
        "likewise: of a layer that is computed again", of="held.working", heading="working", hidden=0
    )
    held_bytes: int = _held("likewise: all of it", of="held.total", heading="of a chip", table=("plans", "memory"))
    usd_per_million_tokens: float | None = _usd()
    kernels: tuple[KernelFigures, ...] = figure(
        "of the slowest stage of the first plan: runs for one micro-batch, and the update", default=()
    )


def training_figures(
    steps: tuple[TrainingStep, ...],
    device: Device,
    macs: int,
    tokens: int,
    sequences: int,
    usd_per_chip_hour: float,
    peak: float,
) -> tuple[TrainingFigures, ...]:
    """Return the figures of plans, the first with its kernels.

    Args:
        steps: of all plans.
        device: that runs them.
        macs: of a forward pass of all sequences.
        tokens: of all sequences.
        sequences: of the step.
        usd_per_chip_hour: price; 0: not known.
        peak: multiply-accumulates per second of a chip.
    """
    return tuple(
        filled(
            TrainingFigures,
            step,
            micro_batch_sequences=sequences // (step.degrees.data * step.degrees.micro_batches),
            tokens_per_s_per_chip=tokens / (step.exec_s * step.degrees.chips),
            mac_utilisation=3 * macs / (step.exec_s * step.degrees.chips * peak),
            usd_per_million_tokens=usd_per_chip_hour / 3600 * step.exec_s * step.degrees.chips / tokens * 1e6 or None,
            kernels=tuple(kernel_figures(device, one) for one in step.kernels.kernels) if step is steps[0] else (),
        )
        for step in steps
    )
