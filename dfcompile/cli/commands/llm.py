"""``dfcompile llm``: a language model from its configuration, kernel by kernel."""

from dfcompile.cli.pages import write_page
from dfcompile.cli.progress import show_stage
from dfcompile.cli.table_command import table_command
from dfcompile.errors import UserError
from dfcompile.host.outputs import check_targets, output_width, write_text
from dfcompile.options.language_models import LanguageOptions, LanguageOutputs
from dfcompile.records import replace


@table_command("llm", LanguageOptions, LanguageOutputs)
def llm(asked: LanguageOptions, outputs: LanguageOutputs) -> None:
    """Count and time a language model from its configuration: prompts, decodes, or both in one step."""
    check_targets((outputs.output, outputs.html))
    is_graph = asked.from_graph or asked.from_onnx is not None
    if outputs.html is not None and is_graph:
        raise UserError("--html: found --from-graph or --from-onnx against a report (leave one of them out)")
    plans = "--serve" if asked.serve is not None else "--train" if asked.train is not None else ""
    if plans and outputs.html is not None:
        raise UserError(f"{plans}: found --html against a table of plans (leave one of them out)")

    from dfcompile.api.language_models import StudyRun, files_of, mapped_steps, request_of, swept

    if is_graph:
        from dfcompile.api.language_models import graph_page

        with show_stage(f"holding {asked.config} against its graph"):
            write_text(graph_page(asked, output_width()), outputs.output)
        return
    if plans:
        from dfcompile.api.plans import serving_run, training_run

        with show_stage(f"planning {asked.config}"):
            planned = serving_run(asked) if asked.serve is not None else training_run(asked)
        write_text(planned.text(outputs.format, output_width(), verbose=outputs.verbose), outputs.output)
        return

    from dfcompile.cli.endings import warn
    from dfcompile.language_models.study import study_of

    request = request_of(asked)
    with show_stage(f"studying {asked.config}"):
        run = StudyRun(study_of(request), files=files_of(asked))
    if asked.sweep:
        with show_stage("studying what changes would bring"):
            run = replace(run, sweep=swept(request, asked.sweep))
    if asked.map:
        if asked.sweep and outputs.format == "csv":
            raise UserError("--format csv: found --sweep and --map against one table")
        with show_stage("mapping layers"):
            run = replace(run, mapped=mapped_steps(run.study))
    warn(*run.study.warnings)
    text = run.text(outputs.format, output_width(), verbose=outputs.verbose)
    write_page(outputs.html, run)
    write_text(text, outputs.output)
