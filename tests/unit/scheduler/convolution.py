"""The convolution of the published table, built by hand: three expansions, two volume conventions."""

from dfcompile.canonical_dag import CanonicalDag, DagBuilder

FILTERS = 6
WINDOW = 25  # 5 x 5, one channel
OUTPUTS = 576  # 24 x 24

_FEATURES = WINDOW * OUTPUTS
_WEIGHTS = FILTERS * WINDOW
_RESULT = FILTERS * OUTPUTS


def convolution_dag(expansion: str, *, whole_arrays: bool, permutation: list[int] | None = None) -> CanonicalDag:
    """Return ``C[6, 576] = A[6, 25] x B[25, 576]`` with im2col before, bias and output reshape after.

    ``permutation`` lists the nodes in the order in which they are added.
    """
    sketch = _Sketch()
    sketch.add("X", memory=True)
    sketch.add("im2col")
    sketch.add("B", memory=True)
    sketch.add("W", memory=True)
    sketch.add("weights")
    sketch.add("A", memory=True)
    sketch.join("X", "im2col", _FEATURES)
    sketch.join("im2col", "B", _FEATURES)
    sketch.join("W", "weights", _WEIGHTS)
    sketch.join("weights", "A", _WEIGHTS)
    {"mv": _matrix_vector, "op": _outer_product, "lmv": _left_matrix_vector}[expansion](sketch, whole_arrays)
    sketch.add("bias")
    sketch.add("add")
    sketch.add("C2", memory=True)
    sketch.add("output")
    sketch.add("Y", memory=True)
    sketch.join("bias", "add", _RESULT)
    sketch.memory.add("bias")
    for left, right in (("C", "add"), ("add", "C2"), ("C2", "output"), ("output", "Y")):
        sketch.join(left, right, _RESULT)
    return sketch.build(expansion, permutation)


class _Sketch:
    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.memory: set[str] = set()
        self.edges: list[tuple[str, str, int]] = []

    def add(self, name: str, *, memory: bool = False) -> None:
        self.nodes.append(name)
        if memory:
            self.memory.add(name)

    def join(self, left: str, right: str, volume: int) -> None:
        self.edges.append((left, right, volume))

    def build(self, name: str, permutation: list[int] | None) -> CanonicalDag:
        builder = DagBuilder(name)
        number = {}
        for position in permutation or range(len(self.nodes)):
            node = self.nodes[position]
            scope = builder.add_scope(node)
            number[node] = builder.add_memory(scope) if node in self.memory else builder.add_task(scope)
        for left, right, volume in self.edges:
            builder.add_edge(number[left], number[right], volume)
        return builder.finish()


def _matrix_vector(sketch: _Sketch, whole_arrays: bool) -> None:
    sketch.add("broadcast")
    sketch.join("A", "broadcast", _WEIGHTS)
    members = [f"mv{column}" for column in range(OUTPUTS)]
    for member in members:
        sketch.add(member)
        sketch.join("broadcast", member, _WEIGHTS)
        sketch.join("B", member, _WEIGHTS)
    sketch.add("C")  # the gather: it streams on to the addition
    for member in members:
        sketch.join(member, "C", _RESULT if whole_arrays else FILTERS)


def _outer_product(sketch: _Sketch, whole_arrays: bool) -> None:
    members = [f"op{k}" for k in range(WINDOW)]
    for member in members:
        sketch.add(member)
        sketch.join("A", member, _RESULT)
        sketch.join("B", member, _RESULT)
    sketch.add("reduce")
    for member in members:
        sketch.join(member, "reduce", FILTERS * WINDOW * OUTPUTS if whole_arrays else _RESULT)
    sketch.add("C", memory=True)
    sketch.join("reduce", "C", _RESULT)


def _left_matrix_vector(sketch: _Sketch, whole_arrays: bool) -> None:
    sketch.add("broadcast")
    sketch.join("B", "broadcast", _FEATURES)
    members = [f"lmv{row}" for row in range(FILTERS)]
    for member in members:
        sketch.add(member)
        sketch.join("broadcast", member, _FEATURES)
        sketch.join("A", member, _FEATURES)
    sketch.add("gather")
    for member in members:
        sketch.join(member, "gather", _RESULT if whole_arrays else OUTPUTS)
    sketch.add("C", memory=True)
    sketch.join("gather", "C", _RESULT)
