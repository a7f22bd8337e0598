"""The SDFG of level 2: one state, a map scope of one tasklet for each nest, made of the nests of a program.

Scopes are made as ``SDFGState.add_mapped_tasklet`` makes them, in a fraction of its time.
"""

from collections.abc import Mapping

import dace
from dace.sdfg.nodes import AccessNode, Map, MapEntry, MapExit, Tasklet
from dace.sdfg.state import SDFGState
from dace.subsets import Range

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.frontend import Level, Program, scalar_type
from dfcompile.frontend.affine import affine_text
from dfcompile.frontend.sdfg.identifiers import underscored
from dfcompile.frontend.sdfg.operator_graph import new_memlet, whole_memlet
from dfcompile.lowering.expressions import Reduction
from dfcompile.lowering.nests.program import RESULT, Nest, NestAccess, NestProgram, View, renamed_words, tasklet_code
from dfcompile.lowering.program_builder import ProgramBuilder
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

_ONCE = {"once": 1}  # the loops of a scope that has none


def sdfg_program(nests: NestProgram) -> Program:
    """Return a program of nests as one whose SDFG has a map scope for each of them."""
    builder = ProgramBuilder(nests.library)
    for step in nests.steps:
        if isinstance(step, View):
            builder.add_view(step)
        else:
            builder.adopt_outputs(nests.library.sdfg, step.op)
            for tensor in step.added:
                is_materialised = nests.arrays[tensor.name].is_materialised
                builder.add_array(tensor.name, tensor.shape, tensor.dtype, materialised=is_materialised)
            for nest in step.nests:
                annotation = Annotation(nest.origin, nest.name, kernel=step.kernel)
                (_add_call if nest.library else _add_scope)(builder, nest, annotation)
    return replace(builder.finish(Level.MAPS, nests.nodes, nests.chosen), applied=nests.applied)


def _add_scope(builder: ProgramBuilder, nest: Nest, annotation: Annotation) -> None:
    target = nest.write.tensor
    names = {name: builder.free_name(name) for name in (*nest.extents, *nest.reads, *nest.tables, RESULT)}
    output = builder.access(target.name)
    before = None
    if nest.accumulate is not None and nest.is_initialised:
        _add_initialisation(builder, nest, nest.accumulate, annotation)
    if nest.accumulate is not None or nest.after_write:
        before, output = builder.rewrite(target.name)
    memlet = _memlet(nest.write, names) if nest.scatter is None else _somewhere(builder, target)
    memlet.wcr = None if nest.accumulate is None else nest.accumulate.value
    elements = {name: (read.tensor.name, _memlet(read, names)) for name, read in nest.reads.items()}
    elements |= {name: (table.name, _somewhere(builder, table)) for name, table in nest.tables.items()}
    reads = {names[name]: (builder.access(array), element) for name, (array, element) in elements.items()}
    loops = {names[name]: extent for name, extent in nest.extents.items()} or _ONCE
    code = tasklet_code(nest, names)
    tasklet, entry = add_map_scope(
        builder.state, underscored(nest.name), loops, reads, code, names[RESULT], (output, memlet)
    )
    if before is not None:
        builder.state.add_nedge(before, entry, dace.Memlet())
    tasklet.location = _located(annotation, nest, names)


def _add_initialisation(builder: ProgramBuilder, nest: Nest, reduction: Reduction, annotation: Annotation) -> None:
    target = nest.write.tensor
    loops = {builder.free_name(f"i{axis}"): extent for axis, extent in enumerate(target.shape)}
    result = builder.free_name(RESULT)
    everywhere = NestAccess(target, tuple({name: 1} for name in loops))
    write = builder.access(target.name), _memlet(everywhere, {})
    name, code = f"{underscored(nest.name)}_init", f"{result} = {reduction.initial(target.dtype)}"
    tasklet, _ = add_map_scope(builder.state, name, loops or _ONCE, {}, code, result, write)
    tasklet.location = replace(annotation, is_initialisation=True).location()


def _add_call(builder: ProgramBuilder, nest: Nest, annotation: Annotation) -> None:
    accesses, target = {**nest.reads, RESULT: nest.write}, nest.write.tensor.name
    names = {name: builder.free_name(name) for name in (*nest.extents, *accesses)}
    places = {names[name]: _memlet(access, names) for name, access in accesses.items()}
    written = {names[RESULT]: places.pop(names[RESULT])}
    tasklet, _, _ = builder.state.add_mapped_tasklet(
        underscored(nest.name),
        {names[name]: f"0:{extent}" for name, extent in nest.extents.items()} or {"once": "0:1"},
        places,
        renamed_words(nest.code, names),
        written,
        language=dace.Language.CPP,
        external_edges=True,
        input_nodes={read.tensor.name: builder.access(read.tensor.name) for read in nest.reads.values()},
        output_nodes={target: builder.access(target)},
    )
    # Of matrices of one element DaCe would hand over the element.
    for connectors, called in ((tasklet.in_connectors, nest.reads), (tasklet.out_connectors, (RESULT,))):
        for name in called:
            connectors[names[name]] = dace.pointer(scalar_type(accesses[name].tensor.dtype))
    tasklet.location = _located(annotation, nest, names)


def _memlet(access: NestAccess, names: Mapping[str, str]) -> dace.Memlet:
    """Return the memlet of an element, or of the elements of all dimensions that have no index."""
    tensor, given = access.tensor, [affine_text(index, names) for index in access.indices]
    rest = [f"0:{extent}" for extent in tensor.shape[len(given) :]]
    return new_memlet(tensor.name, Range.from_string(", ".join([*given, *rest]) or "0"), 1)


def _somewhere(builder: ProgramBuilder, tensor: Tensor) -> dace.Memlet:
    """Return the memlet of one element at a place that the code computes."""
    return new_memlet(tensor.name, Range.from_array(builder.state.sdfg.arrays[tensor.name]), 1)


def _located(annotation: Annotation, nest: Nest, names: Mapping[str, str]) -> dict[str, str]:
    return replace(annotation, spatial=tuple(names[name] for name in nest.spatial), calls=nest.library).location()


def add_map_scope(
    state: SDFGState,
    label: str,
    loops: Mapping[str, int],
    reads: Mapping[str, tuple[AccessNode, dace.Memlet]],
    code: str,
    result: str,
    write: tuple[AccessNode, dace.Memlet],
) -> tuple[Tasklet, MapEntry]:
    """Add a map scope of one tasklet to a state and connect it to access nodes.

    The memlets outside of the scope are whole arrays: DaCe would find the exact ones by walking through all of the
    state for each scope, and nothing needs them.

    Args:
        state: to add it to.
        label: of the tasklet; an identifier.
        loops: parameters and their extents, at least one.
        reads: variable of the tasklet -> where it comes from, one node per array, with a memlet of its own.
        code: of the tasklet, in Python.
        result: variable of the tasklet that is written.
        write: where it goes, with a memlet of its own.
    """
    target, memlet = write
    sources = sorted({node.data: node for node, _ in reads.values()}.items())
    tasklet = Tasklet(label, dict.fromkeys(reads), {result: None}, code)
    around = Map(f"{label}_map", list(loops), Range([(0, extent - 1, 1) for extent in loops.values()]))
    entry, exit_ = MapEntry(around), MapExit(around)
    state.add_nodes_from([entry, tasklet, exit_])
    for node, array in ((exit_, target.data), *((entry, array) for array, _ in sources)):
        node.add_in_connector(f"IN_{array}")
        node.add_out_connector(f"OUT_{array}")
    for array, node in sources:
        state.add_edge(node, None, entry, f"IN_{array}", whole_memlet(state, array))
    for variable, (node, inner) in sorted(reads.items()):
        state.add_edge(entry, f"OUT_{node.data}", tasklet, variable, inner)
    if not reads:
        state.add_nedge(entry, tasklet, dace.Memlet())
    outer = whole_memlet(state, target.data)
    outer.wcr = memlet.wcr
    # An edge outside of the scope comes first: DaCe follows it when the one inside is added.
    state.add_edge(exit_, f"OUT_{target.data}", target, None, outer)
    state.add_edge(tasklet, result, exit_, f"IN_{target.data}", memlet)
    return tasklet, entry
