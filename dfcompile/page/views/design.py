"""The page of a set-up file: a design, solved."""

from dfcompile.page.phrases import quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import View
from dfcompile.page.views.configurations import configuration_charts, limits
from dfcompile.page.views.roofline import design_roofline_charts
from dfcompile.page.views.sharding import design_sharding_chart


def design_view(report: Record) -> View:
    """Return the view of a ``dfcompile-design``."""
    name, limited = report.text("name") or "design", limits(report.parts("configurations"))
    question = f"How long does {name} take on {report.number('figures.chips') or 1:,} chips, and what limits it?"
    charts = (
        *configuration_charts(report.parts("configurations"), name),
        *design_roofline_charts(report),
        *design_sharding_chart(report.parts("kernels"), report.number("figures.tensor_parallel") or 1),
    )
    return View(name, question, _answer(report), (f"Limited by {limited}.",) if limited else (), charts)


def _answer(report: Record) -> str:
    figures = report.part("figures")
    degrees = ", ".join(
        f"{name} {figures.number(f'{name}_parallel')}" for name in ("tensor", "pipeline", "data", "sequence")
    )
    found = f"{figures.number('chips') or 1:,} chips ({degrees}): {quantity(figures.number('time_s') or 0, 's')}"
    used, cost = figures.number("utilization"), figures.number("cost_usd")
    found += "" if used is None else f" at {share(used)} of the peak"
    found += "" if cost is None else f"; {cost:,.0f} USD"
    gap = report.number("search.gap")
    return f"{found}; at most {share(gap)} above the optimum." if gap else f"{found}."
