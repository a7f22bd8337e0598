"""Lowering passes: rewrites of a whole program that stay on its level."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar, cast

from msgspec import Struct

from dfcompile.canonical_dag.dag_pass import DagPass
from dfcompile.errors import OperatorFieldError, RegistrationError, UserError, VerificationError
from dfcompile.frontend import CANONICAL, AppliedPass, Level, Program
from dfcompile.host.private_folder import in_private_folder
from dfcompile.lowering.expansion import OLDER_GROUP
from dfcompile.lowering.nests.check import verify_nests
from dfcompile.lowering.nests.program import NestProgram
from dfcompile.lowering.operators import SHIPPED
from dfcompile.lowering.program_nodes import operator_nodes
from dfcompile.plugins import Collected, PluginKind, faults_of_pass, missing
from dfcompile.plugins.settings import Pass, Rewrite, call_with, parse_call, settings_of
from dfcompile.records import replace

WHERE = "--passes"

Lowered = TypeVar("Lowered", Program, NestProgram)


class LoweringPass(Pass, frozen=True, kw_only=True):
    """A named rewrite of a program of one level.

    Attributes:
        level: of the programs it takes and gives.
    """

    level: Level

    def apply(self, program: Lowered) -> Lowered:
        """Return the program rewritten; it is valid, of the same level, and has the same inputs and outputs.

        Raises:
            UserError: of the pass, with ``in pass 'name'`` put before it.
            PluginError: the pass of a third party raised, or what it returned is no such program.
            VerificationError: the same of a pass of ours.
        """
        with faults_of_pass(self.name, self.origin):
            changed = call_with(self.rewrite, program, self.values)
            if changed is not program:
                _verify(changed, program)
            elif isinstance(program, Program):
                vars(program).clear()  # what was made of its SDFG, which the pass may have changed itself
            return cast("Lowered", changed)


def lowering_pass(name: str, *, level: Level, source: str) -> Callable[[Rewrite], LoweringPass]:
    """Make a `LoweringPass`; importing it changes nothing anywhere.

    Decorates a function of a program, whose keyword-only parameters are options, or a frozen dataclass with a method
    ``__call__`` of a program, whose fields are options. Options are ``int``, ``bool``, ``str`` or ``float``.

    Args:
        name: as the user writes it in ``--passes``, with options as in ``fuse{max=8}``.
        level: of the programs it takes and gives.
        source: citation key.

    Raises:
        RegistrationError: an option is of another type.
    """

    def decorate(rewrite: Rewrite) -> LoweringPass:
        settings = settings_of(rewrite, f"pass {name!r}")
        return LoweringPass(name, rewrite, source, rewrite.__module__, settings, level=level)

    return decorate


def of_level(passes: Iterable[LoweringPass], level: Level) -> tuple[LoweringPass, ...]:
    """Return the passes that rewrite programs of a level."""
    return tuple(found for found in passes if found.level is level)


def apply_passes(program: Lowered, passes: Iterable[LoweringPass]) -> Lowered:
    """Apply the passes of the program's level in order; each must leave a valid program of that level.

    Raises:
        UserError: of a pass, with ``in pass 'name'`` put before it.
        VerificationError: a pass left an invalid program; the message names the pass.
    """
    for found in of_level(passes, program.level):
        changed = found.apply(program)
        if changed is not program:
            counted = "operators" if program.level < Level.NESTS else "map scopes"
            effect = AppliedPass(found.name, _size(program), _size(changed), counted)
            program = replace(changed, applied=(*program.applied, effect))
    return program


def _size(program: Program | NestProgram) -> int:
    """Return how many operators there are, or how many map scopes: one more for each reduction, which it begins."""
    if isinstance(program, NestProgram):
        return sum(1 + nest.is_initialised for nest in program.nests)
    if program.level is not Level.MAPS:
        return len(operator_nodes(program))
    from dace.sdfg.nodes import MapEntry  # takes half a second

    return sum(isinstance(node, MapEntry) for node in program.sdfg.start_state.nodes())


def _verify(changed: object, program: Program | NestProgram) -> None:
    if not isinstance(changed, type(program)):
        raise VerificationError(f"returned {type(changed).__name__} against a {type(program).__name__}")
    if isinstance(changed, NestProgram):
        verify_nests(changed)
        return
    assert isinstance(changed, Program) and isinstance(program, Program)  # noqa: PT018
    from dace.sdfg.validation import InvalidSDFGError  # takes half a second

    if changed.level is not program.level:
        raise VerificationError(f"level {changed.level.name} against {program.level.name}")
    for what, *ports in (("inputs", program.inputs, changed.inputs), ("outputs", program.outputs, changed.outputs)):
        before, after = ([(port.name, port.shape, port.dtype) for port in each] for each in ports)
        if before != after:
            raise VerificationError(f"{what} {after} against {before}")
    held = changed.sdfg.arrays
    for name in (*(port.array for port in (*changed.inputs, *changed.outputs)), *changed.parameters):
        if name not in held:
            raise VerificationError(f"no array {name!r}, which the program's border names")
    try:
        with in_private_folder():  # DaCe saves what is invalid in the current one, through whatever links are there
            changed.sdfg.validate()
    except InvalidSDFGError as error:
        raise VerificationError(f"invalid SDFG: {' '.join(str(error).split())}") from error
    _check_fields(changed)


def _check_fields(program: Program) -> None:
    """Check the attributes of our canonical operators; those of third parties are checked when they are lowered."""
    for node in operator_nodes(program):
        if node.dialect == CANONICAL and node.op_type in SHIPPED:
            try:
                SHIPPED[node.op_type].of_attributes(node.attributes)
            except OperatorFieldError as error:
                raise VerificationError(f"node {node.name!r}: {error}") from error


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


PASSES: Final = PluginKind(
    "lowering pass",
    LoweringPass,
    "dfcompile.lowering.passes",
    "dfcompile.passes",
    plural="lowering passes",
    older_groups=(OLDER_GROUP,),
)


def registered_passes() -> Collected[LoweringPass]:
    """Return every lowering pass of this package and of the entry points of ``dfcompile.passes``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return PASSES.collect()
