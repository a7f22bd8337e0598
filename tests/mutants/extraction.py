"""Mutants of extraction: traversals, families, streams, what is read of an SDFG."""

from tests.mutants.mutant import Mutant

_TRAVERSAL = "canonical_dag/extraction/traversal.py"
_FAMILIES = "canonical_dag/extraction/families.py"
_FLOW = "canonical_dag/extraction/flow.py"
_PROOF = "canonical_dag/extraction/flow.py"
_SCOPES = "canonical_dag/extraction/sdfg_reader.py"

EXTRACTION = (
    Mutant(_TRAVERSAL, "if abs(stride) <= span:", "if abs(stride) < span:"),
    Mutant(_TRAVERSAL, "span += abs(stride) * (extent - 1)", "span += abs(stride) * extent"),
    Mutant(_TRAVERSAL, "while loops and loops[-1].stride == 0:", "if loops and loops[-1].stride == 0:"),
    Mutant(_TRAVERSAL, "joined[-1].stride == loop.stride * loop.extent", "joined[-1].stride == loop.extent"),
    Mutant(_TRAVERSAL, "if split is None or reader.base != member.base:", "if split is None:"),
    Mutant(_TRAVERSAL, "Loop(extent // count, stride * count)", "Loop(extent // count, stride)"),
    Mutant(_TRAVERSAL, "key=lambda loop: loop.stride, reverse=True", "key=lambda loop: loop.stride"),
    Mutant(
        _TRAVERSAL,
        "distinct(np.add.outer(offsets, stride * np.arange(extent, dtype=np.int64)))",
        "np.add.outer(offsets, stride * np.arange(extent, dtype=np.int64)).ravel()",
    ),
    Mutant(_FAMILIES, "volumes[self.row - 1 :: self.row] = self.last", "volumes[self.row - 1] = self.last"),
    Mutant(_FAMILIES, "Loop(cut.tasks, cut.size * stride)", "Loop(cut.tasks, stride)"),
    Mutant(_FAMILIES, "Cut(tasks, size, extent - size * (tasks - 1))", "Cut(tasks, size, size)"),
    Mutant(_FAMILIES, "around = all(divisible)", "around = True"),
    Mutant(_FAMILIES, "access.strides[parameter] != 0 and access.over", "access.over"),
    Mutant(
        _FLOW,
        "return self.array.is_materialised or len(self.streams) < len(self.readers)",
        "return len(self.streams) < len(self.readers)",
    ),
    Mutant(_FLOW, "cycles * pieces**2 > total", "cycles * pieces > total"),
    Mutant(_FLOW, "if all(can_stream(", "if any(can_stream("),
    Mutant(_FLOW, "for access in used[1:]:", "for access in used[2:]:"),
    Mutant(
        _PROOF,
        "return same_rows and written == consumer.member(read, last=True).normal",
        "return same_rows",
    ),
    Mutant(
        _PROOF,
        "if written is None or not Traversal(0, (*producer.over_members(write), *written.loops)).is_injective:",
        "if written is None:",
    ),
    Mutant(_SCOPES, "sum(index * stride for index, stride in zip(start", "sum(index for index, stride in zip(start"),
)
