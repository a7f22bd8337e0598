"""The texts of the small models, by the name of the file that holds each."""

from pathlib import Path

from dfcompile.canonical_dag import format_dag
from tests.goldens.golden_models import GOLDEN_MODELS
from tests.goldens.schedule_text import schedule_text

FOLDER = Path(__file__).parent


def texts() -> dict[str, str]:
    """Return what each file ought to hold now."""
    found = {}
    for model in GOLDEN_MODELS:
        dag = model.dag()
        found[f"{model.name}.dag"] = format_dag(dag)
        found[f"{model.name}.schedule.txt"] = schedule_text(dag, model.pes, model.partition)
    return found
