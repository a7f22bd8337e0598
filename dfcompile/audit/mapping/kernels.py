"""The audit of what each kernel of a mapping does: operations, bytes and times, task by task."""

from collections.abc import Sequence

from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least, expect_figures
from dfcompile.audit.mapping.times import audit_time
from dfcompile.canonical_dag import CanonicalDag, Kernel, TensorRole
from dfcompile.dfmodel_backend.check.machines import PER_S, dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined
from dfcompile.dfmodel_backend.check.task_times import KernelRecount, TaskTimes, flop_of, kernels_of
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import KernelGroupSummary


def audit_kernels(where: str, summaries: Sequence[KernelGroupSummary], times: TaskTimes) -> None:
    """Compute the figures of kernels anew; those of a group are the figures of each of its kernels.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    recounts = dict(kernels_of(times))
    named = [name for summary in summaries for name in summary.kernels]
    if sorted(named) != sorted(recounts):
        raise VerificationError(f"{where}: found {len(named)} kernels against the {len(recounts)} with tasks")
    moved = [0] * len(times.attained.configurations)
    for number, summary in enumerate(summaries):
        at = f"{where}[{number}]"
        expect(f"{at}.count", summary.count, len(summary.kernels))
        for name in summary.kernels:
            longest_s = times.times_ns[times.place[name]] / PER_S
            expect_at_least(f"{at}: its configuration's time", longest_s, summary.time_s, "time_s", ROUNDING)
            _audit_kernel(f"{at} ({name})", summary, recounts[name], times)
            moved[times.place[name]] += summary.dram_bytes
    for number, (found, expected) in enumerate(zip(moved, times.dram_bytes, strict=True)):
        expect(f"{where}: dram_bytes of those in configuration {number}", found, expected)


def _audit_kernel(where: str, summary: KernelGroupSummary, recount: KernelRecount, times: TaskTimes) -> None:
    expect_figures(where, summary, op=recount.op, flop=recount.flop, chip_bytes=recount.chip_bytes)
    recount.require_dram(f"{where}.dram_bytes", summary.dram_bytes)
    expect_figures(where, summary, ROUNDING, network_bytes=recount.received_bytes / times.system.chips)
    parts = recount.compute_ns, summary.dram_bytes / dram_bytes_per_ns(times.system), recount.network_ns
    audit_time(where, summary, parts, joined(times.overlap, *parts))


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
