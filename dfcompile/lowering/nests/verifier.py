"""The verifier of programs of loop nests: what a pass must leave."""

from dfcompile.errors import VerificationError
from dfcompile.lowering.nests.check import check_nest
from dfcompile.lowering.nests.program import NestProgram, View


def verify_nests(program: NestProgram) -> None:
    """Check that every nest accesses arrays within their shapes, after what writes them, and that outputs are written.

    Raises:
        VerificationError: naming the scope, the view or the output.
        UserError: the code of a nest is no expression of Python.
    """
    library = program.library
    known = {*library.parameters, *(port.array for port in library.inputs)}
    for step in program.steps:
        if isinstance(step, View):
            if step.source not in known:
                raise VerificationError(f"view {step.tensor.name!r}: of {step.source!r}, which nothing has written")
            known.add(step.tensor.name)
            continue
        for nest in step.nests:
            check_nest(nest, known)
            known.add(nest.write.tensor.name)
    for port in library.outputs:
        if port.array not in known:
            raise VerificationError(f"output {port.name!r}: nothing writes {port.array!r}")
