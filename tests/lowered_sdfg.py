"""Writes lowered SDFGs by hand for the tests of extraction: one state of map scopes."""

from collections.abc import Mapping, Sequence

import dace

from dfcompile.canonical_dag import Kernel
from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.records import replace

MATERIALISED = dace.StorageType.CPU_Heap


class LoweredSdfg:
    """Arrays and map scopes in one state; scopes are connected in the order in which they are added."""

    def __init__(self, name: str = "hand") -> None:
        self.sdfg = dace.SDFG(name)
        self.state = self.sdfg.add_state()
        self._nodes: dict[str, dace.nodes.AccessNode] = {}

    def border(self, name: str, *shape: int) -> str:
        """Add an input, a parameter or an output."""
        self.sdfg.add_array(name, shape, dace.float32)
        return name

    def memory(self, name: str, *shape: int) -> str:
        self.sdfg.add_array(name, shape, dace.float32, storage=MATERIALISED, transient=True)
        return name

    def inner(self, name: str, *shape: int) -> str:
        """Add an array that may become a stream."""
        self.sdfg.add_array(name, shape, dace.float32, transient=True)
        return name

    def view(self, name: str, of: str, *shape: int) -> str:
        self.sdfg.add_view(name, shape, dace.float32)
        node = self.state.add_access(name)
        self.state.add_edge(self._node(of), None, node, "views", dace.Memlet.from_array(of, self.sdfg.arrays[of]))
        self._nodes[name] = node
        return name

    def scope(
        self,
        name: str,
        loops: Mapping[str, int],
        reads: Sequence[str],
        write: str | Sequence[str],
        *,
        spatial: str = "",
        wcr: bool = False,
        kernel: Kernel | None = None,
    ) -> None:
        """Add ``write = f(reads)`` over loops in temporal order; accesses as ``array[index, index]``."""
        writes = [write] if isinstance(write, str) else list(write)
        annotation = Annotation(name.partition(".")[0], name, tuple(filter(None, spatial.split(","))), kernel=kernel)
        if wcr:
            (access,) = writes
            self._initialise(access.partition("[")[0], replace(annotation, spatial=(), is_initialisation=True))
        inputs = {f"in_{place}": dace.Memlet(access) for place, access in enumerate(reads)}
        outputs = {
            f"out_{place}": dace.Memlet(access, wcr="lambda a, b: a + b" if wcr else None)
            for place, access in enumerate(writes)
        }
        code = "; ".join(f"{result} = {' + '.join(inputs) or '0'}" for result in outputs)
        tasklet, entry, _ = self._mapped(name, loops, inputs, outputs, code)
        tasklet.location = annotation.location()
        if wcr:
            self.state.add_nedge(self._initialised, entry, dace.Memlet())

    def _initialise(self, array: str, annotation: Annotation) -> None:
        shape = self.sdfg.arrays[array].shape
        loops = {f"z{axis}": int(extent) for axis, extent in enumerate(shape)}
        target = {"out_0": dace.Memlet(f"{array}[{','.join(loops)}]")}
        tasklet, _, _ = self._mapped(f"{annotation.scope}.init", loops, {}, target, "out_0 = 0")
        tasklet.location = annotation.location()
        self._initialised = self._nodes.pop(array)

    def _mapped(
        self,
        name: str,
        loops: Mapping[str, int],
        inputs: Mapping[str, dace.Memlet],
        outputs: Mapping[str, dace.Memlet],
        code: str,
    ) -> tuple[dace.nodes.Tasklet, dace.nodes.MapEntry, dace.nodes.MapExit]:
        tasklet, entry, exit_ = self.state.add_mapped_tasklet(
            name.replace(".", "_"),
            {parameter: f"0:{extent}" for parameter, extent in loops.items()},
            dict(inputs),
            code,
            dict(outputs),
            input_nodes={memlet.data: self._node(memlet.data) for memlet in inputs.values()},
            output_nodes={memlet.data: self._node(memlet.data) for memlet in outputs.values()},
            external_edges=True,
        )
        return tasklet, entry, exit_

    def _node(self, array: str) -> dace.nodes.AccessNode:
        if array not in self._nodes:
            self._nodes[array] = self.state.add_access(array)
        return self._nodes[array]
