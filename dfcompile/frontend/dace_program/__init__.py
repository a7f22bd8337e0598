"""Programs written in NumPy with ``@dace.program``: parsed by DaCe, taken apart into operators of level 0."""
