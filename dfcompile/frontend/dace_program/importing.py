"""From a concrete program to a program of level 0: walked, then one operator node per step."""

from collections.abc import Sequence

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.concrete import ConcreteProgram
from dfcompile.frontend.dace_program.emission import Emission
from dfcompile.frontend.dace_program.places import Container, Place, Scope, Window, own_dimensions
from dfcompile.frontend.dace_program.walk import Walk
from dfcompile.frontend.program import Coverage, ModelNode, Port, Program
from dfcompile.frontend.sdfg.operator_graph import Operator, OperatorGraph, apply_dace_settings

RETURNED = "__return"


def imported_program(name: str, program: ConcreteProgram) -> Program:
    """Return a program as one of level 0: one state, one array per value.

    Args:
        name: any text.
        program: that is taken apart.

    Raises:
        UserError: it has something that cannot be taken apart; the message has the user's line.
    """
    apply_dace_settings()
    sdfg = program.parsed()
    arguments = {port.name: port for port in program.arguments}
    emission = Emission([*arguments, *sdfg.arrays])
    walk = Walk(program.path, emission)
    scope = Scope(sdfg)
    containers = {}
    for port in program.arguments:
        shape = port.shape or (1,)
        emission.declare(port.array, shape, port.dtype)
        value = Place(port.array, own_dimensions(len(shape)))
        containers[port.name] = Container(port.name, shape, port.dtype, value=value)
        scope.arrays[port.name] = Window.whole(containers[port.name])
    with walk.located():
        walk.region(sdfg, scope)
    for returned in sorted(array for array in scope.arrays if array.startswith(RETURNED)):
        containers[returned] = scope.arrays[returned].container
    outputs: list[Port] = []
    for written, container in containers.items():
        if container.is_written and container.value is not None:
            own = written.strip("_")
            array = emission.owned(f"store_{own}", container, {port.array for port in outputs})
            shape = arguments[written].shape if written in arguments else container.shape
            outputs.append(Port(own, array, shape, container.dtype))
    if not outputs:
        raise UserError(f"{program.path}: the program writes no argument and returns nothing")
    return _program(name, emission, program.arguments, tuple(outputs))


def _program(name: str, emission: Emission, arguments: Sequence[Port], outputs: tuple[Port, ...]) -> Program:
    """Return the steps that an output depends on as a program; arguments that they read are its inputs."""
    wanted = {port.array for port in outputs}
    live: list[Operator] = []
    for step in reversed(emission.steps):
        if not wanted.isdisjoint(step.results):
            wanted.update(step.operands)
            live.append(step)
    kept = live[::-1]
    border = {*(port.array for port in (*arguments, *outputs)), *emission.constants}
    graph = OperatorGraph(name)
    used = {array for step in kept for array in (*step.operands, *step.results)}
    for array, declared in emission.arrays.items():
        if array in used:
            graph.array(array, declared.shape, declared.dtype, is_transient=array not in border)
    for step in kept:
        graph.add(step)
    inputs = (port for port in arguments if port.array in used)
    parameters = {array: value for array, value in emission.constants.items() if array in used}
    nodes = (ModelNode(step.origin, step.op_type, Coverage.COSTED) for step in kept)
    return graph.program(inputs, outputs, parameters, nodes)
