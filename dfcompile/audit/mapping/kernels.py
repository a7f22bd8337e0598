"""The audit of what each kernel of a mapping does: operations, bytes and times."""

from collections.abc import Sequence

from dfcompile.audit.comparing import ROUNDING, expect_figures
from dfcompile.audit.mapping.times import audit_time
from dfcompile.canonical_dag import CanonicalDag, Kernel, TensorRole
from dfcompile.dfmodel_backend.check.task_kernels import check_kernels, flop_of
from dfcompile.dfmodel_backend.check.task_times import TaskTimes
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import KernelGroupSummary


def audit_kernels(where: str, summaries: Sequence[KernelGroupSummary], times: TaskTimes) -> None:
    """Check the kernels of a mapping task by task, and hold each group against every one of its kernels.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    check_kernels(times)
    known = {one.name: one for one in times.attained.kernels}
    named = [name for summary in summaries for name in summary.kernels]
    if sorted(named) != sorted(known):
        raise VerificationError(f"{where}: found {len(named)} kernels against the {len(known)} with tasks")
    for number, summary in enumerate(summaries):
        expect_figures(f"{where}[{number}]", summary, count=len(summary.kernels))
        for name in summary.kernels:
            at, one = f"{where}[{number}] ({name})", known[name]
            expect_figures(at, summary, op=one.op, flop=one.flop, dram_bytes=one.dram_bytes, chip_bytes=one.chip_bytes)
            expect_figures(at, summary, ROUNDING, network_bytes=one.received_bytes / times.system.chips)
            audit_time(at, summary, (one.compute_ns, one.memory_ns, one.network_ns), one.time_ns)


def _prepared_kernels(dag: CanonicalDag) -> set[str]:
    """Return the names of kernels that depend on parameters alone: they run when weights are loaded."""
    constant = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.PARAMETER}
    makers: dict[str, list[Kernel]] = {}
    for kernel in dag.kernels:
        for name in kernel.outputs:
            makers.setdefault(name, []).append(kernel)
    prepared: set[str] = set()
    open_kernels = list(dag.kernels)
    while True:
        found = [kernel for kernel in open_kernels if constant.issuperset(kernel.inputs)]
        if not found:
            return prepared
        prepared.update(kernel.name for kernel in found)
        open_kernels = [kernel for kernel in open_kernels if kernel.name not in prepared]
        for kernel in found:
            constant.update(name for name in kernel.outputs if all(one.name in prepared for one in makers[name]))


def model_flop(dag: CanonicalDag) -> int:
    """Return the operations of a model, each once, however many chips repeat them."""
    prepared = _prepared_kernels(dag)
    return sum(flop_of(kernel) for kernel in dag.kernels if kernel.name not in prepared)
