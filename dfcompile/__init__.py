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
    from dfcompile.api.compile_model import compile_model as compile  # noqa: A004  # it is what a compiler does
    from dfcompile.api.run_model import run_model as run
    from dfcompile.api.schedule_dag import schedule
    from dfcompile.api.solve_design import solve
    from dfcompile.errors import InternalError, UserError

__all__ = ["InternalError", "UserError", "__version__", "compile", "run", "schedule", "solve"]

# Where each name is; it is imported when it is first used, so that ``import dfcompile`` takes no time.
_PLACES: Final = (
    ("compile", "dfcompile.api.compile_model", "compile_model"),
    ("run", "dfcompile.api.run_model", "run_model"),
    ("schedule", "dfcompile.api.schedule_dag", "schedule"),
    ("solve", "dfcompile.api.solve_design", "solve"),
    ("InternalError", "dfcompile.errors", "InternalError"),
    ("UserError", "dfcompile.errors", "UserError"),
)

dace_guard.install()


def __getattr__(name: str) -> object:
    for public, module, attribute in _PLACES:
        if name == public:
            return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
