"""Studies of language models from plain options, and their graphs beside them: what ``dfcompile llm`` does."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dfcompile.api.runs import PageSource, Shown
from dfcompile.errors import InfeasibleError, UserError, nearest
from dfcompile.host.inputs import readable_text
from dfcompile.host.stages import counted
from dfcompile.language_models.configuration.reading import Configuration, model_of, read_configuration
from dfcompile.language_models.footprint import kv_elements_per_token
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.graph.exported import exported_trace
from dfcompile.language_models.graph.kernels import GraphKernel, Trace, graph_kernels, total_macs
from dfcompile.language_models.mapping.mapped_layers import MappedStep, mapped_step
from dfcompile.language_models.model import Mask
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import NOTHING, Case
from dfcompile.language_models.steps.batch import LARGEST, Batch, Sequences, chunked_batch, decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import Fusion, Latent, StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.study import Request, Study, check_has_no_encoder, study_of
from dfcompile.language_models.times.step_time import roofline
from dfcompile.options import read_options, takes
from dfcompile.options.language_models import LanguageOptions
from dfcompile.options.numbers import read_real, within
from dfcompile.options.option import defaults_of
from dfcompile.options.readers import File, pairs
from dfcompile.records import replace
from dfcompile.report.language_models.figures import KernelFigures, study_record, study_rows
from dfcompile.report.language_models.mapped import mapped_lines, mapped_record, mapped_rows
from dfcompile.report.language_models.tables import study_table
from dfcompile.report.plain_values import Json, rounded, text_names
from dfcompile.report.text_tables import Column, Table, page


def graph_page(asked: LanguageOptions, width: int) -> str:
    """Return the kernels of the graph of one step as a table, and their multiply-accumulates beside the closed form.

    The graph multiplies every query with every key, makes logits of every token, and expands latents: so does the
    closed form here.

    Raises:
        UserError: no single kind of sequence is asked for, it is longer than a window, torch or transformers is not
            installed, a layer has a mixer, or the two differ, which says by how much.
    """
    how = "--from-onnx" if asked.from_onnx else "--from-graph"
    batch, group = _one_step(asked, how)
    configuration = read_configuration(asked.config, may_download=asked.allow_download)
    model = model_of(configuration)
    mixer = next((layer.name for layer in model.layers if layer.mixer is not None), None)
    if mixer is not None:
        raise UserError(f"{how}: found a layer of {mixer} against attention, MLPs and experts")
    check_has_no_encoder(model, how)
    reaches = (attention.reach for attention in model.attentions)
    least = min((reach.extent for reach in reaches if reach.mask is not Mask.FULL), default=batch.longest)
    if batch.longest > least:
        raise UserError(f"{how}: found a prompt of {batch.longest} tokens against a window of {least} or fewer")
    trace = _trace(configuration, group, asked)
    kernels = graph_kernels(trace)
    closed = step_of(model, batch, uniform(FORMATS["bf16"]), StepChoices(causal=False, latent=Latent.NAIVE)).macs
    counted = total_macs(kernels)
    if counted != closed:
        raise UserError(f"{how}: the graph of {model.name} has {counted} MACs against {closed} of the closed form")
    lines = [*_table(kernels).lines(width), f"MACs of the graph: {counted:,}, as the closed form"]
    held = kv_elements_per_token(model) * group.past * group.count
    if trace.cache_elements != held:
        found = f"a cache of {trace.cache_elements} elements against {held}"
        raise UserError(f"{how}: the graph of {model.name} has {found} of the closed form")
    if held:
        lines.append(f"elements of the cache: {held:,}, as the closed form")
    return page(lines)


def _trace(configuration: Configuration, group: Sequences, asked: LanguageOptions) -> Trace:
    if asked.from_onnx is None:
        return exported_trace(configuration.values, group, configuration.where)
    from dfcompile.language_models.graph.onnx_trace import onnx_trace

    return onnx_trace(asked.from_onnx, asked.dims)


def _one_step(asked: LanguageOptions, how: str) -> tuple[Batch, Sequences]:
    """Return the one step that is asked for, and its one kind of sequence."""
    prompts, decodes = asked.prefill, asked.decode
    if asked.chunked or len(prompts) + len(decodes) != 1:
        raise UserError(f"{how}: found no single prompt (give --prefill TOKENS or --decode CONTEXTxBATCH)")
    batch = prefill_batch(prompts[0], all_rows=True) if prompts else decode_batch(decodes[0])
    if len(batch.groups) != 1:
        raise UserError(f"{how}: {batch.name}: found sequences of {len(batch.groups)} lengths against one")
    return batch, batch.groups[0]


def _table(kernels: tuple[GraphKernel, ...]) -> Table:
    columns = (
        Column("kind", tuple(one.kind for one in kernels), is_text=True),
        Column("count", tuple(f"{one.count:,}" for one in kernels)),
        *(Column(name, tuple(str(getattr(one, name)) for one in kernels)) for name in ("m", "k", "n", "batch")),
        Column("MACs", tuple(f"{one.macs:,}" for one in kernels)),
    )
    modules = Column("module", tuple(one.name for one in kernels), is_text=True)
    return Table("kernels of the graph", (modules,), columns)


_OF_PLANS = {
    "serve": ("ttft", "tpot", "speculate"),
    "train": ("recompute", "dropout", "split_norms", "interleave", "shard_optimiser"),
}
MOST_CHIPS = 2**20
MOST_SWEPT = 64
_DEGREES = {"tp": "tensor", "sp": "sequence", "dp": "data", "pp": "pipeline", "ep": "expert", "mb": "micro_batches"}
_SWEPT = ("batch", "chips", "context", "dtype")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StudyRun(Shown):
    """What a language model takes on a machine.

    Attributes:
        study: all figures.
        sweep: a row per value of ``sweep="batch=1,8"`` and step; empty if nobody asked.
        mapped: its steps with their layers mapped, if that was asked for.
        files: that were read, or names of what is shipped.
    """

    study: Study
    sweep: Sequence[Mapping[str, Json]] = ()
    mapped: Sequence[MappedStep] = ()
    files: tuple[Path, ...] = ()

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report: of mapped steps a layer of each kind, in its configurations."""
        from dfcompile.visualization.dataflow import MappedGraph, dataflow_of_graphs

        graphs = [
            MappedGraph(
                f"{part.part}, {step.batch.name}" if len(self.mapped) > 1 else part.part, part.graph, part.mapping
            )
            for step in self.mapped
            for part in step.parts
        ]
        return PageSource(self.files, graph=dataflow_of_graphs(graphs, self.study.model.name) if self.mapped else None)

    def tables(self, width: int, *, verbose: bool) -> str:
        """Return the study as tables, those of its mapping among them."""
        mapped = [line for step in self.mapped for line in mapped_lines(step, width, verbose=verbose)]
        return study_table(self.study, width, verbose=verbose, sweep=self.sweep, mapped=mapped)

    def to_record(self) -> dict[str, Json]:
        """Return the report as the plain values of its JSON contract."""
        return study_record(self.study, self.sweep, list(map(mapped_record, self.mapped)))

    def to_rows(self) -> list[dict[str, Json]]:
        """Return a row per configuration of a mapping, or per value of a sweep and step, else per kernel and step."""
        mapped = [row for step in self.mapped for row in mapped_rows(step)]
        return [dict(row) for row in mapped or self.sweep] or study_rows(self.study)

    @property
    def text_columns(self) -> Collection[str]:
        """Names of columns of texts, as far as their values may not show it."""
        return (*text_names(KernelFigures), "degrees", "assumptions")


@takes(LanguageOptions)
def llm(config: File, system: File, **options: Any) -> StudyRun:
    """Count and time a language model from its configuration: prompts, decodes, or both in one step.

    Args:
        config: a file, a folder, or a name.
        system: a device, a spreadsheet or a system file.
        options: by name.

    Raises:
        UserError: the configuration cannot be read, an option has another form, or a step does not fit; or the option
            asks for something else than a study.
    """
    asked = read_options(LanguageOptions, {"config": config, "system": system, **options})
    for name in ("map", "from_graph", "from_onnx", "serve", "train"):
        if getattr(asked, name):
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"llm: found {name} against a study of kernels (dfcompile llm {flag} prints it)")
    request = request_of(asked)
    rows = swept(request, asked.sweep) if asked.sweep else ()
    return StudyRun(study_of(request), rows, files=files_of(asked))


def files_of(asked: LanguageOptions) -> tuple[Path, Path]:
    """Return the files of a model and its machine, or their names."""
    return Path(asked.config), Path(asked.system)


def mapped_steps(study: Study) -> tuple[MappedStep, ...]:
    """Map a layer of each kind of every step of a study on its system, with as many chips as were at hand.

    Raises:
        UserError: as `mapped_step`, or a part of caches is offloaded.
    """
    request = study.request
    if request.offload != NOTHING:
        raise UserError("--map: found --offload against caches in the chip's own memory")
    batches = counted(request.batches)
    cases = (Case(study.model, one, study.device, study.precision, request.choices, roofline) for one in batches)
    return tuple(mapped_step(request.options.system, case, max(request.chips)) for case in cases)


def request_of(asked: LanguageOptions) -> Request:
    """Return the request of a study.

    Raises:
        UserError: an option is not written as it should be, is about a plan that nobody asked for, or no step is asked
            for.
    """
    usual = defaults_of(LanguageOptions)
    for plan, names in _OF_PLANS.items():
        for name in names if getattr(asked, plan) is None else ():
            if getattr(asked, name) != usual[name]:
                raise UserError(f"--{name.replace('_', '-')}: found no --{plan}, which it is about")
    degrees = None if asked.degrees is None else degrees_of(asked.degrees)
    batches = (
        *(prefill_batch(text, all_rows=asked.head == "all") for text in asked.prefill),
        *(decode_batch(text) for text in asked.decode),
        *(chunked_batch(text) for text in asked.chunked),
    )
    if not batches and asked.serve is None and asked.train is None:
        raise UserError("llm: found no step (give --prefill TOKENS, --decode CONTEXTxBATCH or --chunked …)")
    chips = _chips(asked.chips) if degrees is None else (degrees.chips,)
    choices = StepChoices(
        causal=asked.attention == "causal",
        flash=asked.scores == "chip",
        fusion=Fusion(asked.fusion),
        latent=Latent(asked.latent),
        shared_prefix=asked.shared_prefix,
        expert_shares=() if asked.expert_histogram is None else expert_shares(asked.expert_histogram),
    )
    return Request(asked, batches, chips, degrees, choices, offload_of(asked.offload))


def offload_of(text: str) -> Fraction | None:
    """Return the share of caches of ``none``, ``auto`` or a number of 0 to 1.

    Raises:
        UserError: it is none of these.
    """
    if text in ("none", "auto"):
        return NOTHING if text == "none" else None
    share = read_real(text)
    if share is None or not 0 <= share <= 1:
        raise UserError(f"--offload: found {text[:40]!r} against none, auto or a share of 0 to 1")
    return share


def degrees_of(text: str) -> Degrees:
    """Return the degrees of ``tp=8,ep=8``; what is not said is 1.

    Raises:
        UserError: an unknown word, one twice, or no whole number above 0.
    """
    counts = pairs("--degrees", text, _DEGREES, "degree")
    made = Degrees(**{_DEGREES[word]: _positive("--degrees", count, MOST_CHIPS) for word, count in counts})
    if made.stage_chips % made.expert_group:
        found = f"experts over {made.expert_group} chips"
        raise UserError(f"--degrees: found {found} against a divisor of the {made.stage_chips} of a stage")
    return made


def expert_shares(path: Path) -> tuple[float, ...]:
    """Read how often each expert was chosen: a JSON list, or numbers with blanks or commas between them.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    where = f"--expert-histogram {str(path)!r}"
    text = readable_text(path, where, 2**24)
    try:
        found = [float(word) for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()]
    except ValueError as error:
        raise UserError(f"{where}: found something else than numbers") from error
    if not found or not all(0 <= one < 1e300 for one in found) or sum(found) <= 0:
        raise UserError(f"{where}: found no numbers above 0")
    return tuple(found)


def swept(request: Request, text: str) -> Sequence[Mapping[str, Json]]:
    """Return one row per value and step of ``batch=1,2,4``: what the change brings; what does not fit says so.

    Raises:
        UserError: it is not written so.
    """
    change, _, listed = text.partition("=")
    values = [value.strip() for value in listed.split(",") if value.strip()]
    if change not in _SWEPT:
        raise UserError(f"--sweep: unknown change {change!r}{nearest(change, _SWEPT)}")
    if not 0 < len(values) <= MOST_SWEPT:
        raise UserError(f"--sweep: found {len(values)} values against 1 to {MOST_SWEPT}")
    rows: list[Mapping[str, Json]] = []
    for value in counted(values):
        changed = _changed(request, change, value)
        for batch in changed.batches:
            named: dict[str, Json] = {"change": change, "value": value, "step": batch.name}
            rows.append(named | _swept_figures(replace(changed, batches=(batch,))))
    return rows


def _swept_figures(request: Request) -> dict[str, Json]:
    try:
        step = study_of(request).steps[0]
    except InfeasibleError:
        empty = dict.fromkeys(("time_ms", "tokens_per_s", "per_sequence", "held_bytes"))
        return {**empty, "degrees": "does not fit", "assumptions": None}
    return {
        "time_ms": rounded(step.exec_s * 1e3),
        "tokens_per_s": rounded(step.tokens_per_s),
        "per_sequence": rounded(step.tokens_per_s_per_sequence),
        "held_bytes": step.deployment.held_bytes,
        "degrees": step.deployment.degrees.name,
        "assumptions": "; ".join(step.assumptions),
    }


def _changed(request: Request, change: str, value: str) -> Request:
    match change:
        case "chips":
            return replace(request, chips=_chips(value), degrees=None)
        case "dtype":
            return replace(request, options=replace(request.options, dtype=value))
    amount = _positive("--sweep", value, LARGEST)
    batches = (
        replace(batch, groups=tuple(_resized(group, change, amount) for group in batch.groups))
        for batch in request.batches
    )
    return replace(request, batches=tuple(batches))


def _resized(group: Sequences, change: str, amount: int) -> Sequences:
    if change == "batch":
        return replace(group, count=amount)
    return replace(group, past=amount - 1) if group.decodes else replace(group, new=amount)


def _chips(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_positive("--chips", word, MOST_CHIPS) for word in text.split(",")))


def _positive(option: str, text: str, most: int) -> int:
    return within(1, most, "a whole number of {} to {}")(option, text.strip())
