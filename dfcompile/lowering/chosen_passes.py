"""The passes that the user chose, of programs and of canonical DAGs, each with its options."""

from collections.abc import Iterable

from msgspec import Struct

from dfcompile.canonical_dag.dag_pass import DagPass
from dfcompile.errors import RegistrationError, UserError
from dfcompile.lowering.lowering_pass import LoweringPass
from dfcompile.plugins import Collected, missing
from dfcompile.plugins.settings import parse_call

WHERE = "--passes"


class ChosenPasses(Struct, frozen=True):
    """Passes in the order in which the user named them.

    Attributes:
        of_programs: applied at their levels of lowering.
        of_dags: applied to the canonical DAG after its extraction.
    """

    of_programs: tuple[LoweringPass, ...] = ()
    of_dags: tuple[DagPass, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.of_programs or self.of_dags)


def choose_passes(
    texts: Iterable[str], program_passes: Collected[LoweringPass], dag_passes: Collected[DagPass]
) -> ChosenPasses:
    """Return the passes that texts such as ``fuse-elementwise{max=8}`` name.

    Raises:
        UserError: a pass or an option does not exist; an option is of another type, missing or given twice.
        RegistrationError: two packages have a pass of the name, one for programs and one for canonical DAGs.
    """
    known = {**program_passes.by_name, **dag_passes.by_name}
    of_programs, of_dags = list[LoweringPass](), list[DagPass]()
    for text in texts:
        call = parse_call(text, WHERE)
        in_programs, in_dags = program_passes.by_name.get(call.name), dag_passes.by_name.get(call.name)
        if in_programs is not None and in_dags is not None:
            claims = f"claimed by {in_programs.module!r} and by {in_dags.module!r}"
            raise RegistrationError(f"pass {call.name!r}: {claims} (rename one or uninstall one)")
        if in_programs is not None:
            of_programs.append(in_programs.given(call, WHERE))
        elif in_dags is not None:
            of_dags.append(in_dags.given(call, WHERE))
        else:
            faults = (*program_passes.faults, *dag_passes.faults)
            raise UserError(f"{WHERE} {call.name!r}: unknown{missing(call.name, known, faults)}")
    return ChosenPasses(tuple(of_programs), tuple(of_dags))
