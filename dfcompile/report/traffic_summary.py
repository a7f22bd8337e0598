"""Sums up what mappings move beside the least possible."""

from collections import Counter
from collections.abc import Iterator

from dfcompile import dfmodel_backend as backend
from dfcompile.bounds.fusion.residency import ResidencyPlan
from dfcompile.bounds.operators import BoundedModel
from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.driver import Point
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import OperatorTrafficSummary, TrafficSummary
from dfcompile.traffic_plans import TrafficPlans

ELSEWHERE = "(other)"  # what no operator of the model moves


def traffic_summary(plans: TrafficPlans, point: Point) -> TrafficSummary:
    """Return what the mapping of a point moves beside the least.

    Raises:
        VerificationError: it moves less than is proved to be necessary.
    """
    size = int(point.sram_bytes) * point.attained.chips
    plan = plans.of(size)
    moved, proved = point.attained.dram_bytes, plans.model.compulsory_bytes
    least = None if plan is None else plan.traffic_bytes
    if moved < proved:
        raise VerificationError(f"traffic: found {moved} bytes moved against {proved} proved to be necessary")
    return TrafficSummary(
        moved_bytes=moved,
        proved_bytes=proved,
        least_bytes=least,
        least_is_exact=least is not None and least <= moved and plan is not None and plan.is_exact,
        buffer_bytes=size or None,
        ratio=moved / least if least else None,
        schedule_ratio=point.scheduled.figures.io_bytes / proved if proved else None,
        operators=tuple(_operators(plans.merged, point.attained, plan)),
    )


def _operators(
    merged: BoundedModel, attained: backend.TaskMapping, plan: ResidencyPlan | None
) -> Iterator[OperatorTrafficSummary]:
    owner = {name: op.name for op in merged.operators for name in (op.name, *op.within)}
    least: Counter[str] = Counter()
    for share in () if plan is None else plan.operators:
        least[owner[share.name]] += share.traffic_bytes
    moved: Counter[str] = Counter()
    for origin, count in _moved_by_origin(attained):
        moved[owner.get(origin, ELSEWHERE)] += count
    names = dict.fromkeys((*owner.values(), *moved))
    for name in sorted(names, key=lambda name: (least[name] - moved[name], name)):
        if moved[name] or least[name]:
            yield OperatorTrafficSummary(name, moved[name], least[name], moved[name] - least[name])


def _moved_by_origin(attained: backend.TaskMapping) -> Iterator[tuple[str, int]]:
    """Yield bytes with the operator that moves them: what is written by the maker, what is read by the first reader.

    On several chips all move what one does.
    """
    makers, readers = _neighbours(attained.machine_dag)
    of_kernel = {kernel.name: kernel.origin for kernel in attained.machine_dag.kernels}
    for configuration in attained.configurations:
        present = dict.fromkeys(of_kernel.get(name, "") for name in configuration.kernels)
        ranks = {origin: rank for rank, origin in enumerate(present)}
        for store in configuration.stores:
            reading = readers.get(store.name, {})
            if len(reading) < len(present):  # either may have thousands
                first = min(ranks.keys() & reading.keys(), key=ranks.__getitem__, default=None)
            else:
                first = next((origin for origin in present if origin in reading), None)
            yield next(iter(reading), "") if first is None else first, store.dram_read_bytes * attained.chips
            yield makers.get(store.name, ""), store.dram_write_bytes * attained.chips


def _neighbours(dag: CanonicalDag) -> tuple[dict[str, str], dict[str, dict[str, None]]]:
    """Return the operator that writes each store, and those that read it; a store is an array or a scope of tasks."""
    makers: dict[str, str] = {}
    readers: dict[str, dict[str, None]] = {}
    sources, targets = dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target]
    for source, target in dict.fromkeys(zip(sources.tolist(), targets.tolist(), strict=True)):
        writer, reader = dag.scopes[source], dag.scopes[target]
        if writer.kernel != NO_KERNEL:
            makers.setdefault(writer.name, dag.kernels[writer.kernel].origin)
            makers.setdefault(reader.name, dag.kernels[writer.kernel].origin)
        if reader.kernel != NO_KERNEL:
            readers.setdefault(writer.name, {})[dag.kernels[reader.kernel].origin] = None
    return makers, readers
