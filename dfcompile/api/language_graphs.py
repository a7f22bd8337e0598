"""A language model's graph beside its closed form: what ``dfcompile llm --from-graph`` prints."""

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of, read_configuration
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.graph.exported import exported_trace
from dfcompile.language_models.graph.kernels import GraphKernel, Trace, graph_kernels, total_macs
from dfcompile.language_models.model import Mask
from dfcompile.language_models.parameters import kv_elements_per_token
from dfcompile.language_models.steps.batch import Batch, Sequences, decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import Latent, StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.options.language_models import LanguageOptions
from dfcompile.report.text_tables import Column, Table, page


def graph_page(asked: LanguageOptions, width: int) -> str:
    """Return the kernels of the graph of one step as a table, and their multiply-accumulates beside the closed form.

    The graph multiplies every query with every key, makes logits of every token, and expands latents: so does the
    closed form here.

    Raises:
        UserError: no single kind of sequence is asked for, it is longer than a window, torch or transformers is not
            installed, or the two differ, which says by how much.
    """
    how = "--from-onnx" if asked.from_onnx else "--from-graph"
    batch, group = _one_step(asked, how)
    configuration = read_configuration(asked.config, may_download=asked.allow_download)
    model = model_of(configuration)
    reaches = (layer.attention.reach for layer in model.layers)
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
