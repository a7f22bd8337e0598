"""Chips with a second memory behind the first, as one age of DFModel's files has them [ko24].

What fits the first memory is in it alone. Otherwise both are one memory of the sum of their capacities, whose bandwidth
is the mean of theirs, weighted with their capacities.
"""

from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.design_options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace


def solve_message(message: schema.DSE, where: str, options: DesignOptions) -> DesignSolution:
    """Solve a design file with whichever memories give the least time.

    Raises:
        UserError: fields contradict each other.
        InfeasibleError: nothing fits, in both memories together.
    """
    designs = memory_choices(message, where)
    found: list[DesignSolution] = []
    for design in designs:
        try:
            found.append(solve_design(design, options))
        except InfeasibleError:
            if design is designs[-1] and not found:
                raise
    # The sum of both is slower: what fits the first memory alone is never better there.
    return min(found, key=lambda solution: solution.figures.batch_ns)


def memory_choices(message: schema.DSE, where: str) -> tuple[Design, ...]:
    """Return a design with the first memory alone and, if there is a second one, with both as one.

    Raises:
        UserError: as `design_of`; or a second memory that is no slower one behind a limited first.
    """
    memory = message.system.memory
    if not memory.second_dram_bw and not memory.second_dram_cap:
        return (design_of(message, where),)
    for field in ("dram_cap", "second_dram_cap", "second_dram_bw"):
        if not getattr(memory, field) > 0:
            raise UserError(
                f"{where}: field 'system.memory.{field}': found {getattr(memory, field):g} against more than 0, with a "
                "second memory"
            )
    if memory.second_dram_bw > memory.dram_bw:
        raise UserError(
            f"{where}: field 'system.memory.second_dram_bw': found {memory.second_dram_bw:g} against at most dram_bw "
            f"{memory.dram_bw:g} (the first memory is the fast one)"
        )
    single = schema.DSE()
    single.CopyFrom(message)
    single.system.memory.ClearField("second_dram_bw")
    single.system.memory.ClearField("second_dram_cap")
    first = design_of(single, where)
    capacity = memory.dram_cap + memory.second_dram_cap
    bandwidth = memory.dram_cap * memory.dram_bw + memory.second_dram_cap * memory.second_dram_bw
    machine = replace(first.machine, dram_bytes=capacity, dram_gb_per_s=bandwidth / capacity)
    return first, replace(first, machine=machine)
