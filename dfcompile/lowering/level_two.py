"""Level 2 of a model, of whichever form: loop nests, or what passes made of their SDFG."""

from collections.abc import Sequence
from typing import TypeAlias

from dfcompile.canonical_dag.extraction.scopes import LoweredGraph
from dfcompile.frontend import Level, Program
from dfcompile.lowering.levels import lower_to_nests
from dfcompile.lowering.lowering_pass import LoweringPass, apply_passes, of_level
from dfcompile.lowering.nests.program import NestProgram
from dfcompile.lowering.selection import ExpansionTable
from dfcompile.options import Choice

LevelTwo: TypeAlias = NestProgram | Program


def level_two(
    library: Program, table: ExpansionTable, choices: Sequence[Choice], passes: Sequence[LoweringPass]
) -> LevelTwo:
    """Lower a program of level 1; where passes rewrite level 2, the SDFG that they rewrite is made of the nests.

    Raises:
        UserError: an operator has no such expansion, or of a pass.
        PluginError: an expansion or a pass of a third party failed.
    """
    nests = apply_passes(lower_to_nests(library, table, choices), passes)
    return apply_passes(program_of(nests), passes) if of_level(passes, Level.MAPS) else nests


def graph_of(lowered: LevelTwo) -> LoweredGraph:
    """Return what extraction needs of a model on level 2.

    Raises:
        UserError: it is an SDFG of another form, or calls libraries.
    """
    if isinstance(lowered, NestProgram):
        return lowered.graph
    from dfcompile.canonical_dag.extraction.sdfg_reader import read_lowered  # needs DaCe

    return read_lowered(lowered.sdfg)


def program_of(lowered: LevelTwo) -> Program:
    """Return a model on level 2 as an SDFG; of nests it is made."""
    if not isinstance(lowered, NestProgram):
        return lowered
    from dfcompile.lowering.nests.sdfg import sdfg_program  # needs DaCe

    return sdfg_program(lowered)
