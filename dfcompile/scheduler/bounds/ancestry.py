"""A forest that grows leaf by leaf, and the ancestor of a node so many steps above it."""


class Ancestry:
    """Nodes under parents; finds ancestors in logarithmic time.

    Each node also knows one ancestor further away: the distances double as in a skew-binary number, so that a walk
    which takes the long way wherever it does not overshoot has logarithmically many steps.
    """

    def __init__(self, nodes: int) -> None:
        """Begin without any node below another; node numbers are below ``nodes``."""
        self._parent = list(range(nodes))
        self._far = list(range(nodes))
        self._depth = [0] * nodes

    def put(self, node: int, parent: int) -> None:
        """Put a node without children under a parent."""
        far, depth = self._far, self._depth
        middle = far[parent]
        is_double = depth[parent] - depth[middle] == depth[middle] - depth[far[middle]]
        self._parent[node] = parent
        far[node] = far[middle] if is_double else parent
        depth[node] = depth[parent] + 1

    def above(self, node: int, steps: int) -> int | None:
        """Return the ancestor so many steps above a node; ``None`` where the tree ends before."""
        parent, far, depth = self._parent, self._far, self._depth
        goal = depth[node] - steps
        if goal < 0:
            return None
        while depth[node] > goal:
            node = far[node] if depth[far[node]] >= goal else parent[node]
        return node
