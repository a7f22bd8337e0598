"""The page of a language model: its steps, where their time goes, and what limits their kernels."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dfcompile.page.phrases import column, four_digits, quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Colouring, Guide, Mark, SmallTable, View
from dfcompile.page.views.roofline import roof, sharding_chart
from dfcompile.report.text_tables import Column

_LONGEST_ANSWER = 160  # characters
_ANSWERED_STEPS = 2  # in the answer; the table has all
_CHART_STEPS = 24
_EXCHANGES, _REST = "exchanges between chips", "waiting and the rest"
_EXPLAINED_STEPS = 4
_OVERLAPPED = "Async"  # limit of a kernel that runs while others do
_NEGLIGIBLE = 1e-3  # share of a step's time that its bar does not show


def language_model_view(report: Record) -> View:
    """Return the view of a report of ``dfcompile llm``."""
    model, system = report.text("model.name"), report.text("system.name")
    steps = report.parts("steps")
    question = f"How long do steps of {model} take on {system}, and what limits them?"
    charts = tuple(_charts(report, steps))
    tables, answer = (_table(steps),) if steps else (), _answer(steps)
    # Names in the order of colours: by the largest share that each has of a step's time.
    largest: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        spent = _spent(step)
        for name, time in spent.items():
            largest[name] = max(largest[name], time / sum(spent.values()))
    return View(
        f"{model} on {system}", question, answer, tuple(_reasons(steps, answer)), tables, charts=charts,
        operators=tuple(name for name, _ in _descending(largest)),
    )  # fmt: skip


def _answer(steps: Sequence[Record]) -> str:
    """Return the times and rates of the first steps, and their assumptions if there is room."""
    times = []
    for step in steps[:_ANSWERED_STEPS]:
        rate, chips = step.number("tokens_per_s"), step.number("chips") or 1
        time = f"{step.text('step')} takes {quantity(step.number('time_s') or 0, 's')} on {chips:,} "
        time += "chips" if chips > 1 else "chip"
        times.append(time + (f" ({rate:,.0f} tokens/s)" if rate is not None else ""))
    more = f"; {len(steps) - _ANSWERED_STEPS:,} more steps in the table" if len(steps) > _ANSWERED_STEPS else ""
    assumptions = list(dict.fromkeys(text for step in steps[:_ANSWERED_STEPS] for text in step.texts("assumptions")))
    full = f"{'; '.join((*times, *assumptions))}{more}."
    return full if len(full) <= _LONGEST_ANSWER else f"{'; '.join(times)}{more}."


def _table(steps: Sequence[Record]) -> SmallTable:
    """Return a row per step: how fast, how near to the limits, and what a chip holds."""
    columns = [
        Column("step", tuple(step.text("step") for step in steps), is_text=True),
        column("chips", [step.number("chips") for step in steps], ""),
        Column("shared as", tuple(step.text("degrees") or "-" for step in steps), is_text=True),
    ]
    for heading, path, unit in (
        ("time", "time_s", "s"),
        ("exchanges", "exchange_s", "s"),
        ("tokens/s", "tokens_per_s", ""),
        ("peak used, %", "mac_utilisation", "%"),
        ("bandwidth used, %", "memory_utilisation", "%"),
        ("weights", "chip_weight_bytes", "B"),
        ("caches", "chip_kv_bytes", "B"),
        ("USD per million tokens", "usd_per_million_tokens", ""),
    ):
        values = [step.number(path) for step in steps]
        if any(values) and unit == "%":
            shares = ("-" if value is None else f"{100 * value:.1f}" for value in values)
            columns.append(Column(heading, tuple(shares)))
        elif any(values):
            columns.append(column(heading, values, unit))
    return SmallTable("Steps; weights and caches are of a chip", tuple(columns))


def _reasons(steps: Sequence[Record], answer: str) -> Iterator[str]:
    for step in steps[:_EXPLAINED_STEPS]:
        yield from _largest_kernels(step)
        tried, infeasible = step.number("degrees_tried") or 0, step.number("degrees_infeasible") or 0
        if tried > 1:
            yield (
                f"{step.text('step')}: {step.text('degrees')} is the best of {tried:,} ways to share the model among "
                f"chips; {infeasible:,} of them do not fit."
            )
        yield from (f"{step.text('step')}: {text}." for text in step.texts("assumptions") if text not in answer)


def _largest_kernels(step: Record) -> Iterator[str]:
    """Yield what limits the kernels of a step, and which of them take longest."""
    times: defaultdict[str, float] = defaultdict(float)
    bounds: defaultdict[str, float] = defaultdict(float)
    for kernel in step.parts("kernels"):
        took = (kernel.number("count") or 1) * (kernel.number("time_s") or 0)
        times[kernel.text("name")] += took
        if kernel.text("bound") != _OVERLAPPED:
            bounds[kernel.text("bound").lower()] += took
    total = sum(times.values())
    if not total:
        return
    longest = ", ".join(f"{name} ({share(took / total)})" for name, took in _descending(times)[:3])
    limiting = [(name, took / total) for name, took in _descending(bounds) if took > _NEGLIGIBLE * total]
    limits = ", ".join(f"{name} {share(part)}" for name, part in limiting)
    yield f"{step.text('step')}: what limits its kernels, by their time: {limits}; the longest are {longest}."


def _descending(times: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(times.items(), key=lambda pair: -pair[1])


def _spent(step: Record) -> dict[str, float]:
    """Return the time of a step by what it is spent on: kernels by name, exposed transfers, exchanges, the rest."""
    spent: defaultdict[str, float] = defaultdict(float)
    for kernel in step.parts("kernels"):
        if kernel.text("bound") != _OVERLAPPED:  # what does not overlap is in its part's exposed transfers
            spent[kernel.text("name")] += (kernel.number("count") or 1) * (kernel.number("time_s") or 0)
    for part in step.parts("parts"):
        spent["transfers"] += (part.number("count") or 1) * (part.number("transfers_exposed_s") or 0)
    spent[_EXCHANGES] += step.number("exchange_s") or 0
    spent[_REST] += max((step.number("time_s") or 0) - sum(spent.values()), 0)
    total = sum(spent.values())
    return {name: time for name, time in spent.items() if time > _NEGLIGIBLE * total}


def _time_chart(steps: Sequence[Record]) -> Iterator[Chart]:
    marks = []
    for step in steps[:_CHART_STEPS]:
        spent, time = _spent(step), step.number("time_s") or 0
        whole = max(sum(spent.values()), time)
        row = f"{step.text('step')}: {quantity(time, 's')}"
        marks += [
            Mark(row, four_digits(100 * took / whole), name, f"{name}: {quantity(took, 's')}")
            for name, took in _descending(spent)
        ]
    title = "What the time of each step goes to"
    caption = "Kernels of all layers together, the longest first, and exchanges between chips."
    axes = Axis("step"), Axis("share of the time", "%")
    yield Chart(ChartKind.ROWS, title, caption, *axes, tuple(marks), colouring=Colouring.OPERATOR, is_beside=True)


def _memory_chart(report: Record, steps: Sequence[Record]) -> Iterator[Chart]:
    """Yield what weights and caches take of the memory of a chip; the rest is for activations."""
    capacity = report.number("system.capacity_bytes")
    marks = []
    for step in steps[:_CHART_STEPS]:
        held = {
            name: step.number(f"chip_{path}_bytes") or 0 for name, path in (("weights", "weight"), ("caches", "kv"))
        }
        if capacity:
            held["the rest"] = max(capacity - sum(held.values()), 0)
        marks += [Mark(step.text("step"), held[name], name, quantity(held[name], "B")) for name in held]
    title, caption = "Memory of a chip", "What weights and caches of keys and values take at most"
    caption += f", of {quantity(capacity, 'B')}; the rest is for activations." if capacity else "."
    yield Chart(ChartKind.ROWS, title, caption, Axis("step"), Axis("memory", "bytes"), tuple(marks))


def _charts(report: Record, steps: Sequence[Record]) -> Iterator[Chart]:
    yield from _time_chart(steps)
    yield from _memory_chart(report, steps)
    for step in steps:
        dots = tuple(_dots(step))
        if dots:
            title = f"Roofline of {step.text('step')}"
            caption = (
                "A dot per kernel of a chip, in the colours above: what it computes per byte against how fast it does. "
                "On the slope memory limits it, on the flat line arithmetic."
            )
            axes = Axis("operations per byte", "MAC/B", is_log=True), Axis("attained", "MAC/s", is_log=True)
            guides = tuple(_roof(report, dots))
            yield Chart(ChartKind.DOTS, title, caption, *axes, dots, guides, colouring=Colouring.OPERATOR)
    for mapped in report.parts("mapped"):
        for part in mapped.parts("parts"):
            subject = f"a layer of {part.text('part')}, {mapped.text('step')}"
            yield from sharding_chart(part.parts("layouts"), part.numbers("network_chips"), subject)


def _dots(step: Record) -> Iterator[Mark]:
    for kernel in step.parts("kernels"):
        macs, moved, time = (kernel.number(name) or 0 for name in ("macs", "bytes", "time_s"))
        if macs and moved and time:
            name = kernel.text("name")
            label = f"{name} of {kernel.text('part')}, limited by {kernel.text('bound').lower()}"
            yield Mark(four_digits(macs / moved), four_digits(macs / time), name, label, name=name)


def _roof(report: Record, dots: Sequence[Mark]) -> Iterator[Guide]:
    """Yield the roof over the dots: bandwidth, and the lowest peak of a number format that no dot exceeds."""
    bandwidth = report.number("system.bytes_per_s")
    rates = report.part("system.macs_per_s")
    peaks = sorted((rate, form) for form in rates.values if (rate := rates.number(form)) is not None)
    fastest = max(mark.y for mark in dots)
    peak = next(((f"peak of {form}", rate) for rate, form in peaks if rate >= fastest * (1 - 1e-9)), None)
    if bandwidth is not None and peak is not None:
        yield from roof(dots, ("memory bandwidth", bandwidth), peak)
