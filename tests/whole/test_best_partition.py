"""The search for a better partition, on graphs of the published sizes."""

import statistics

from dfcompile.scheduler import ScheduleOptions, check, schedule
from tests.unit.scheduler.reference_schedules import reference_schedules


def test_best_is_five_percent_below_both_published_partitions_on_gaussian_elimination() -> None:
    records = [each for each in reference_schedules() if each.dag.name == "gaussian" and each.pes == 32]
    published = [
        statistics.median(each.makespan for each in records if each.partition == name) for name in ("sb-lts", "sb-rlx")
    ]
    dags = [each.dag for each in records if each.partition == "sb-lts"]

    found = [schedule(dag, ScheduleOptions(32, "best")) for dag in dags]

    assert len(found) == 6
    assert statistics.median(each.makespan_cycles for each in found) <= 0.95 * min(published)
    for dag, each in zip(dags, found, strict=True):
        check(dag, each)
