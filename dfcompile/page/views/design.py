"""The page of a set-up file: a design, solved."""

from dfcompile.page.phrases import quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import View
from dfcompile.page.views.configurations import configuration_charts, configuration_tables, limit_reasons
from dfcompile.page.views.roofline import design_mapping, design_roofline_charts, design_sharding_chart, kernel_tables

_MILLION = 1e6


def design_view(report: Record) -> View:
    """Return the view of a ``dfcompile-design``."""
    name, configurations = report.text("name") or "design", report.parts("configurations")
    question = f"How long does {name} take on {report.number('figures.chips') or 1:,} chips, and what limits it?"
    charts = (
        *configuration_charts(configurations, name),
        *design_roofline_charts(report),
        *design_sharding_chart(report.parts("kernels"), report.number("figures.tensor_parallel") or 1),
    )
    tables = (*configuration_tables(configurations), *kernel_tables(design_mapping(report)))
    reasons = tuple(limit_reasons(configurations))
    largest = sorted(report.parts("kernels"), key=lambda kernel: -(kernel.number("flop") or 0))
    operators = tuple(kernel.text("name") for kernel in largest)
    return View(name, question, _answer(report), reasons, tables, charts=charts, operators=operators)


def _answer(report: Record) -> str:
    figures = report.part("figures")
    ways = ((name, figures.number(f"{name}_parallel")) for name in ("tensor", "pipeline", "data", "sequence"))
    degrees = ", ".join(f"{name} {degree:,}" for name, degree in ways if degree is not None and degree > 1)
    time, chips, used, cost = (figures.number(path) for path in ("time_s", "chips", "utilization", "cost_usd"))
    found = f"{quantity(time or 0, 's')} on {chips or 1:,} {'chips' if (chips or 1) > 1 else 'chip'}"
    found += f" ({degrees})" if degrees else ""
    found += "" if used is None else f", at {share(used)} of the peak"
    if cost is not None:
        found += f"; {cost / _MILLION:,.1f} million USD" if cost >= _MILLION else f"; {cost:,.0f} USD"
    gap = report.number("search.gap")
    return f"{found}; at most {share(gap)} above the optimum." if gap else f"{found}."
