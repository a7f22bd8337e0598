"""dfcompile: which lowering, on how many processing elements and chips, gives what makespan, I/O and cost."""

__version__ = "0.1.0"
