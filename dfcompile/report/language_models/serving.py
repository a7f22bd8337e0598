"""The figures of serving plans: each with its meaning and the tables that show it."""

from dfcompile.language_models.planner import Plan
from dfcompile.report.figure import figure, filled, record


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
