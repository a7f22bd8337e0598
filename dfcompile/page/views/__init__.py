"""What a page shows first, per kind of report; each from its JSON alone."""

from collections.abc import Callable, Mapping

from dfcompile.errors import UserError
from dfcompile.page.records import Record
from dfcompile.page.view import View
from dfcompile.page.views.actor_graph import actor_graph_view
from dfcompile.page.views.bounds import bounds_view
from dfcompile.page.views.comparison import comparison_view
from dfcompile.page.views.design import design_view
from dfcompile.page.views.exploration import exploration_view
from dfcompile.page.views.language_model import language_model_view
from dfcompile.page.views.model import model_view
from dfcompile.records import replace
from dfcompile.report.plain_values import Json

_VIEWS: Mapping[str, Callable[[Record], View]] = {
    "dfcompile-report": model_view,
    "dfcompile-actors": actor_graph_view,
    "dfcompile-exploration": exploration_view,
    "dfcompile-bounds": bounds_view,
    "dfcompile-design": design_view,
    "dfcompile-comparison": comparison_view,
    "dfcompile-language-model": language_model_view,
}


def kind_of(report: Record) -> str:
    """Return which kind of report it is, without its version.

    Raises:
        UserError: it is of no kind that pages show.
    """
    named = report.text("format") or report.text("schema")
    kind = named.partition("/")[0]
    if kind not in _VIEWS:
        found = f"format {named!r}" if named else "no format"
        raise UserError(f"report: found {found} against {', '.join(_VIEWS)} (dfcompile … --format json)")
    return kind


def view_of(report: Record) -> View:
    """Return what a page shows of a report.

    Raises:
        UserError: it is of no kind that pages show.
    """
    assumptions = report.items("assumptions") or report.items("notes")
    view, said = _VIEWS[kind_of(report)](report), tuple(map(_assumption, assumptions))
    shown = tuple(chart for chart in view.charts if chart.is_worth_drawing)
    return replace(view, charts=shown, assumptions=said, warnings=report.texts("warnings"))


def _assumption(said: Json) -> tuple[str, str, str]:
    """Return name, value and source; of one that is a sentence, all is its value."""
    one = Record(said if isinstance(said, dict) else {"value": said})
    return one.text("name"), one.text("value"), one.text("source")
