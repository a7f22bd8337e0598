"""The figures of serving and of training plans: each with its meaning and the tables that show it."""

from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.parallel.training import TrainingStep
from dfcompile.language_models.planner import Plan
from dfcompile.report.figure import figure, filled, record
from dfcompile.report.language_models.figures import KernelFigures, kernel_figures
from dfcompile.report.text_tables import binary


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
    usd_per_million_tokens: float | None = figure(
        "where a price is known", heading="USD per\nM tokens", cell=",.4g", hidden=None, default=None
    )


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
    weight_bytes: int = figure("of the fullest chip", of="held.weights", heading="weights", table="memory", cell=binary)
    gradient_bytes: int = figure("likewise", of="held.gradients", heading="gradients", table="memory", cell=binary)
    optimiser_bytes: int = figure(
        "likewise: moments, and weights in 4 bytes",
        of="held.optimiser",
        heading="optimiser",
        table="memory",
        cell=binary,
    )
    activation_bytes: int = figure(
        "likewise: of all micro-batches in flight", of="held.activations", heading="activations", table="memory",
        cell=binary,
    )  # fmt: skip
    working_bytes: int = figure(
        "likewise: of a layer that is computed again", of="held.working", heading="working", table="memory",
        cell=binary, hidden=0,
    )  # fmt: skip
    held_bytes: int = figure(
        "likewise: all of it", of="held.total", heading="of a chip", table=("plans", "memory"), cell=binary
    )
    usd_per_million_tokens: float | None = figure(
        "where a price is known", heading="USD per\nM tokens", cell=",.4g", hidden=None, default=None
    )
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
