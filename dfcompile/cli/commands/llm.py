"""``dfcompile llm``: a language model from its configuration, kernel by kernel."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from dfcompile.cli.pages import HTML, files_alone, write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.strict_command import StrictCommand, target_of
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.report.plain_values import Json

FORMATS = ("table", "json", "csv")


@click.command(name="llm", cls=StrictCommand)
@click.option("--config", default="llama-3.1-8b", show_default=True, metavar="FILE|FOLDER|NAME",
              help="A config.json, a folder that has one, a shipped name, or a "
              "model OWNER/NAME in the hub's cache on this machine.")  # fmt: skip
@click.option("--allow-download", is_flag=True,
              help="Fetch a model's config.json, and nothing else, if it is not on this machine.")  # fmt: skip
@click.option("--system", default="NVL-AX", show_default=True, metavar="NAME|FILE[:NAME]",
              help="A shipped device, a spreadsheet (.csv, .tsv, .xlsx, .json, .toml) or a system file.")  # fmt: skip
@click.option("--prefill", metavar="TOKENS[@PAST][xBATCH][,…]", multiple=True, help="Prompts, each option a step.")
@click.option("--decode", metavar="CONTEXT[xBATCH][,…]", multiple=True,
              help="One more token of each sequence, which is part of its context.")  # fmt: skip
@click.option("--chunked", metavar="NEW@PAST+CONTEXTxBATCH|PROMPT:ANSWER:CHUNK", multiple=True,
              help="A piece of a prompt and decodes in one step.")  # fmt: skip
@click.option("--chips", default="1", show_default=True, metavar="N[,N…]", help="Chips that may be used.")
@click.option("--degrees", metavar="tp=N,sp=N,dp=N,pp=N,ep=N,mb=N", help="Degrees of parallelism; else all are tried.")
@click.option("--aim", type=click.Choice(["time", "cost", "energy"]), default="time", show_default=True,
              help="What the search makes small: the step's time, chips times time, or energy.")  # fmt: skip
@click.option("--time", "time_", type=click.Choice(["bound", "roofline", "tiling", "calibrated"]),
              help="By which the tables count; roofline, or calibrated with --efficiency.")  # fmt: skip
@click.option("--efficiency", default="", metavar="a100|h100|FILE", help="Fitted efficiencies.")
@click.option("--dtype", default="", metavar="FORMAT|w=FORMAT,a=FORMAT,kv=FORMAT,…",
              help="Number formats instead of the configuration's.")  # fmt: skip
@click.option("--multiplies", default="bf16,fp16", show_default=True, metavar="FORMAT[,…]",
              help="What the one rate of a system file is of.")  # fmt: skip
@click.option("--attention", type=click.Choice(["causal", "full"]), default="causal", show_default=True,
              help="Whether tokens see none after them.")  # fmt: skip
@click.option("--scores", type=click.Choice(["chip", "memory"]), default="chip", show_default=True,
              help="Where scores of attention stay; in memory, softmax is a kernel.")  # fmt: skip
@click.option("--fusion", type=click.Choice(["none", "elementwise", "full"]), default="none", show_default=True,
              help="Which activations do not reach memory.")  # fmt: skip
@click.option("--latent", type=click.Choice(["auto", "naive", "absorbed"]), default="auto", show_default=True,
              help="How latent attention multiplies.")  # fmt: skip
@click.option("--head", type=click.Choice(["last", "all"]), default="last", show_default=True,
              help="For which tokens of a prompt there are logits.")  # fmt: skip
@click.option("--overlap", type=click.Choice(["kernel", "full"]), default="kernel", show_default=True,
              help="Whether kernels follow each other, or all overlap: a bound.")  # fmt: skip
@click.option("--transfers", type=click.Choice(["sync", "async", "prefetch"]), default="async", show_default=True,
              help="Whether caches move beside kernels, as far as the memory has time.")  # fmt: skip
@click.option("--offload", default="none", show_default=True, metavar="none|auto|SHARE",
              help="Caches in a memory beside the chip's own: as much as does not fit, or a share.")  # fmt: skip
@click.option("--kv-block", default=1, show_default=True, type=click.IntRange(1, 2**20),
              help="Tokens of a block of the cache.")  # fmt: skip
@click.option("--shared-prefix", default=0, show_default=True, type=click.IntRange(0, 2**40),
              help="Tokens at the beginning that all sequences share.")  # fmt: skip
@click.option("--expert-histogram", type=click.Path(path_type=Path), metavar="FILE",
              help="How often each expert was chosen: numbers.")  # fmt: skip
@click.option("--allow-oversubscribed", is_flag=True, help="Let pass what memory does not hold.")
@click.option("--usd-per-chip-hour", default=0.0, type=click.FloatRange(0, 1e6), help="For cost per million tokens.")
@click.option("--sweep", metavar="batch|chips|dtype|context=V[,V…]", help="What a change would bring.")
@click.option("--map", "map_", is_flag=True,
              help="Also fuse a layer of each kind, and shard it over up to --chips chips.")  # fmt: skip
@click.option("--from-graph", is_flag=True,
              help="Hold one step against the graph that transformers runs (needs it and torch).")  # fmt: skip
@click.option("--from-onnx", type=click.Path(path_type=Path), metavar="FILE",
              help="The same against the graph in an ONNX file.")  # fmt: skip
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension of that file.")
@click.option("--compat", type=click.Choice(["notebook"]), help="What the notebook prints, mistakes included.")
@HTML
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True,
              help="Of the report.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="List the assumptions in the table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write there, not to stdout (-).")  # fmt: skip
def llm(
    *,
    config: str,
    system: str,
    compat: str | None,
    format_: str,
    verbose: bool,
    output: Path | None,
    html: Path | None,
    sweep: str | None,
    map_: bool,
    from_graph: bool,
    **options: object,
) -> None:
    """Count and time a language model from its configuration: prompts, decodes, or both in one step."""
    output = target_of(output)
    check_targets((output, html))
    if html is not None and (compat is not None or from_graph or options["from_onnx"] is not None):
        raise UserError("--html: found --compat, --from-graph or --from-onnx against a report (leave one of them out)")

    from dfcompile.api.language_models import notebook_page, request_of, swept

    if compat is not None:
        with show_stage(f"studying {config}"):
            page = notebook_page(config, system, options)
        write_text(page, output)
        return

    if from_graph or options["from_onnx"] is not None:
        from dfcompile.api.language_graphs import graph_page

        with show_stage(f"holding {config} against its graph"):
            page = graph_page(config, options, output_width())
        write_text(page, output)
        return

    from dfcompile.cli.endings import warn
    from dfcompile.language_models.study import study_of
    from dfcompile.report.language_models.record import rows_csv, study_csv, study_json
    from dfcompile.report.language_models.tables import study_table

    request = request_of(config, system, options)
    with show_stage(f"studying {config}"):
        found = study_of(request)
    rows: Sequence[Mapping[str, Json]] = ()
    if sweep:
        with show_stage("studying what changes would bring"):
            rows = swept(request, sweep)
    mapping, source = None, files_alone(config, system)
    if map_:
        from dfcompile.api.language_mappings import mapped, page_of_mapped
        from dfcompile.report.language_models.mapped import mapping_report

        if sweep and format_ == "csv":
            raise UserError("--format csv: found --sweep and --map against one table")
        with show_stage("mapping layers"):
            steps = mapped(found)
            mapping = mapping_report(steps, output_width(), verbose=verbose)
        source = partial(page_of_mapped, steps, found.model.name, (Path(config), Path(system)))
    for warning in found.warnings:
        warn(warning)
    as_json = study_json(found, rows, mapping.records if mapping is not None else ())
    match format_:
        case "json":
            text = as_json
        case "csv":
            table = mapping.rows if mapping is not None else rows
            text = rows_csv(table) if table else study_csv(found)
        case _:
            text = study_table(
                found, output_width(), verbose=verbose, sweep=rows, mapped=mapping.lines if mapping is not None else ()
            )
    write_page(html, lambda: as_json, source)
    write_text(text, output)
