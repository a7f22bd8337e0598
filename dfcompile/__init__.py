"""dfcompile: which lowering, on how many processing elements and chips, gives what makespan, I/O and cost.

import dfcompile as df

run = df.compile("model.py", pes=[16, 128], expand={"MatMul": ["mv", "op"]})
print(run.table)
"""

import importlib
from typing import TYPE_CHECKING, Final

from dfcompile.host import dace_guard
from dfcompile.version import __version__

if TYPE_CHECKING:
    from dfcompile.api.bound_model import bounds
    from dfcompile.api.compare_reports import compare
    from dfcompile.api.compile_model import compile_model as compile  # noqa: A004  # it is what a compiler does
    from dfcompile.api.compile_model import run_model as run
    from dfcompile.api.explore_model import explore_model as explore
    from dfcompile.api.language_models import llm
    from dfcompile.api.runs import open_page
    from dfcompile.api.schedule_dag import schedule, schedule_actors
    from dfcompile.api.solve_design import solve
    from dfcompile.errors import InternalError, UserError

__all__ = [
    "InternalError", "UserError", "__version__", "bounds", "compare", "compile", "explore", "llm", "open_page", "run",
    "schedule", "schedule_actors", "solve",
]  # fmt: skip

# Where each name is; it is imported when it is first used, so that ``import dfcompile`` takes no time.
_PLACES: Final = (
    ("dfcompile.api.bound_model", "bounds", "bounds"),
    ("dfcompile.api.compare_reports", "compare", "compare"),
    ("dfcompile.api.compile_model", "compile_model", "compile"),
    ("dfcompile.api.explore_model", "explore_model", "explore"),
    ("dfcompile.api.language_models", "llm", "llm"),
    ("dfcompile.api.compile_model", "run_model", "run"),
    ("dfcompile.api.runs", "open_page", "open_page"),
    ("dfcompile.api.schedule_dag", "schedule_actors", "schedule_actors"),
    ("dfcompile.api.schedule_dag", "schedule", "schedule"),
    ("dfcompile.api.solve_design", "solve", "solve"),
    *(("dfcompile.errors", name, name) for name in ("InternalError", "UserError")),
)

dace_guard.install()


def __getattr__(name: str) -> object:
    for module, attribute, public in _PLACES:
        if name == public:
            return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
