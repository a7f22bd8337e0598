"""From a concrete program to a program of level 0: walked, then one operator node per step."""

import dace
from dace.sdfg.nodes import AccessNode

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.concrete import ConcreteProgram
from dfcompile.frontend.dace_program.emission import Emission, Operation
from dfcompile.frontend.dace_program.places import Container, Place, Scope, Window, own_dimensions
from dfcompile.frontend.dace_program.steps import Steps
from dfcompile.frontend.dace_program.walk import Walk
from dfcompile.frontend.program import Coverage, Level, ModelNode, Port, Program
from dfcompile.frontend.sdfg.dace_settings import apply_dace_settings
from dfcompile.frontend.sdfg.dialects import input_connector, output_connector
from dfcompile.frontend.sdfg.element_copies import NodeCopies
from dfcompile.frontend.sdfg.identifiers import safe_identifier
from dfcompile.frontend.sdfg.numbering import number_elements
from dfcompile.frontend.sdfg.scalar_types import scalar_type
from dfcompile.frontend.sdfg.whole_memlets import WholeMemlets

RETURNED = "__return"


def steps_of(program: ConcreteProgram) -> Steps:
    """Return what a program does, step by step.

    Raises:
        UserError: it has something that cannot be taken apart; the message has the user's line.
    """
    apply_dace_settings()
    sdfg = program.parsed()
    arguments = {each.name: Port(each.name, each.name, each.shape, each.dtype) for each in program.arguments}
    emission = Emission([*arguments, *sdfg.arrays])
    walk = Walk(program.path, emission)
    scope = Scope()
    containers = {}
    for name, port in arguments.items():
        shape = port.shape or (1,)
        emission.declare(name, shape, port.dtype)
        containers[name] = Container(name, shape, port.dtype, value=Place(name, own_dimensions(len(shape))))
        scope.arrays[name] = Window.whole(containers[name])
    with walk.located():
        walk.region(sdfg, sdfg, scope)
    for name in sorted(name for name in scope.arrays if name.startswith(RETURNED)):
        containers[name] = scope.arrays[name].container
    return _finished(program, emission, containers, arguments)


def _finished(
    program: ConcreteProgram, emission: Emission, containers: dict[str, Container], arguments: dict[str, Port]
) -> Steps:
    outputs: list[Port] = []
    for name, container in containers.items():
        if container.is_written and container.value is not None:
            array = emission.owned(
                Operation(f"store_{name.strip('_')}", 0), container, {port.array for port in outputs}
            )
            shape = arguments[name].shape if name in arguments else container.shape
            outputs.append(Port(name.strip("_"), array, shape, container.dtype))
    if not outputs:
        raise UserError(f"{program.path}: the program writes no argument and returns nothing")
    read = {name for step in emission.steps for name in step.inputs}
    inputs = tuple(port for name, port in arguments.items() if name in read)
    return Steps(emission.arrays, emission.constants, tuple(emission.steps), inputs, tuple(outputs))


def program_of_steps(name: str, steps: Steps) -> Program:
    """Return the program of level 0: one state, one array per value."""
    apply_dace_settings()
    live = _live(steps)
    sdfg = dace.SDFG(safe_identifier(name))
    used = {array for step in steps.steps if step.output in live for array in (*step.inputs, step.output)}
    border = {port.array for port in (*steps.inputs, *steps.outputs)} | set(steps.constants)
    for array, declared in steps.arrays.items():
        if array in used:
            transient = array not in border
            sdfg.add_array(array, declared.shape, scalar_type(declared.dtype), transient=transient)
    state = sdfg.add_state("main")
    nodes, whole = NodeCopies(), WholeMemlets(sdfg)
    access: dict[str, AccessNode] = {}
    kept = [step for step in steps.steps if step.output in live]
    for step in kept:
        inputs = [input_connector(at) for at in range(len(step.inputs))]
        node = nodes.operator(
            step.name,
            op_type=step.op_type,
            origin=step.name,
            attributes=step.attributes,
            inputs=inputs,
            outputs=[output_connector(0)],
        )
        state.add_node(node)
        for array in dict.fromkeys((*step.inputs, step.output)):
            if array not in access:
                access[array] = nodes.access(array)
                state.add_node(access[array])
        for connector, array in zip(inputs, step.inputs, strict=True):
            state.add_edge(access[array], None, node, connector, whole.of(array))
        state.add_edge(node, output_connector(0), access[step.output], None, whole.of(step.output))
    number_elements(sdfg)
    return Program(
        name=sdfg.name,
        level=Level.ONNX,
        sdfg=sdfg,
        inputs=tuple(port for port in steps.inputs if port.array in used),
        outputs=steps.outputs,
        parameters={array: value for array, value in steps.constants.items() if array in used},
        nodes=tuple(ModelNode(step.name, step.op_type, Coverage.COSTED) for step in kept),
    )


def _live(steps: Steps) -> frozenset[str]:
    """Return the arrays that an output depends on."""
    wanted = {port.array for port in steps.outputs}
    for step in reversed(steps.steps):
        if step.output in wanted:
            wanted |= set(step.inputs)
    return frozenset(wanted)
