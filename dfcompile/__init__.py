"""dfcompile: which lowering, on how many processing elements and chips, gives what makespan, I/O and cost."""

from dfcompile.host import dace_guard

__version__ = "0.1.0"

dace_guard.install()
