"""The page of a language model: its steps, and what bounds their kernels."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dfcompile.page.phrases import quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark, View, spread
from dfcompile.page.views.roofline import roof
from dfcompile.page.views.sharding import sharding_chart


def language_model_view(report: Record) -> View:
    """Return the view of a report of ``dfcompile llm``."""
    model, system = report.text("model.name"), report.text("system.name")
    steps = report.parts("steps")
    question = f"How long do steps of {model} take on {system}, and what limits them?"
    answer, charts = " ".join(map(_answer, steps)), tuple(_charts(report, steps))
    return View(f"{model} on {system}", question, answer, tuple(_reasons(steps)), charts)


def _answer(step: Record) -> str:
    chips = step.number("chips") or 1
    found = f"{step.text('step')} on {chips:,} {'chips' if chips > 1 else 'chip'}"
    degrees = step.text("degrees")
    found += f" ({degrees})" if degrees else ""
    rate = step.number("tokens_per_s")
    found += f": {quantity(step.number('time_s') or 0, 's')}"
    found += f", {rate:,.0f} tokens/s" if rate is not None else ""
    return f"{'; '.join((found, *step.texts('assumptions')))}."


def _reasons(steps: Sequence[Record]) -> Iterator[str]:
    for step in steps:
        compute, memory = step.number("mac_utilisation"), step.number("memory_utilisation")
        if compute is not None and memory is not None:
            limit = "compute" if compute > memory else "memory"
            yield (
                f"{step.text('step')}: nearer to the limit of {limit}; arithmetic works at {share(compute)} of its "
                f"peak, memory at {share(memory)}."
            )
        yield from _largest_kernels(step)
        tried, infeasible = step.number("degrees_tried") or 0, step.number("degrees_infeasible") or 0
        if tried > 1:
            yield (
                f"{step.text('step')}: {step.text('degrees')} is the best of {tried:,} ways to share the model among "
                f"chips; {infeasible:,} of them do not fit."
            )


def _largest_kernels(step: Record) -> Iterator[str]:
    """Yield what bounds the kernels of a step, and which of them take longest."""
    times: defaultdict[str, float] = defaultdict(float)
    bounds: defaultdict[str, float] = defaultdict(float)
    for kernel in step.parts("kernels"):
        took = (kernel.number("count") or 1) * (kernel.number("time_s") or 0)
        times[kernel.text("name")] += took
        bounds[kernel.text("bound").lower()] += took
    total = sum(times.values())
    if not total:
        return
    longest = ", ".join(f"{name} ({share(took / total)})" for name, took in _descending(times)[:3])
    limits = ", ".join(f"{name} {share(took / total)}" for name, took in _descending(bounds))
    yield f"{step.text('step')}: of the time of kernels, by what bounds them: {limits}; the longest are {longest}."


def _descending(times: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(times.items(), key=lambda pair: -pair[1])


def _charts(report: Record, steps: Sequence[Record]) -> Iterator[Chart]:
    parts = [(step, part, part.number("count") or 1) for step in steps for part in step.parts("parts")]
    marks = tuple(
        Mark(
            step.text("step"), count * (part.number("time_s") or 0), part.text("part"), f"{count} × {part.text('part')}"
        )
        for step, part, count in parts
    )
    if marks:
        title, caption = "Time of each step", "Parts of the model, all their layers together."
        yield Chart(ChartKind.BARS, title, caption, Axis("step"), Axis("time", "s"), marks)
    for step in steps:
        dots = tuple(_dots(step))
        if dots:
            title = f"Roofline of {step.text('step')}"
            caption = "A dot per kernel of a chip: what it computes per byte against how fast it does."
            axes = ("operations per byte", "MAC/B"), ("attained", "MAC/s")
            yield spread(ChartKind.DOTS, title, caption, *axes, dots, tuple(_roof(report, dots)))
    for mapped in report.parts("mapped"):
        for part in mapped.parts("parts"):
            of = f"a layer of {part.text('part')}, {mapped.text('step')}"
            yield from sharding_chart(part.parts("layouts"), part.numbers("network_chips"), of)


def _dots(step: Record) -> Iterator[Mark]:
    for kernel in step.parts("kernels"):
        macs, moved, time = (kernel.number(name) or 0 for name in ("macs", "bytes", "time_s"))
        if macs and moved and time:
            name = f"{kernel.text('name')} of {kernel.text('part')}"
            yield Mark(macs / moved, macs / time, kernel.text("bound"), name)


def _roof(report: Record, dots: Sequence[Mark]) -> Iterator[Guide]:
    """Yield the roof over the dots: bandwidth, and the peak of the form that is nearest above what is attained."""
    bandwidth = report.number("system.bytes_per_s")
    rates = report.part("system.macs_per_s")
    peaks = sorted((rate, form) for form in rates.values if (rate := rates.number(form)) is not None)
    fastest = max(mark.y for mark in dots)
    peak = next(((f"peak of {form}", rate) for rate, form in peaks if rate >= fastest * (1 - 1e-9)), None)
    if bandwidth is not None and peak is not None:
        yield from roof(dots, ("memory bandwidth", bandwidth), peak)
