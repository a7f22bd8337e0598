"""Recorded schedules of the public scheduler, element by element with our FIFOs."""

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag
from tests.unit.scheduler.element_simulator import simulate
from tests.unit.scheduler.reference_schedules import ReferenceSchedule, reference_schedules, schedule_of


def _rates_are_integral(dag: CanonicalDag) -> bool:
    read, written = dag.volume_in[dag.is_computational], dag.volume_out[dag.is_computational]
    both = (read > 0) & (written > 0)
    return bool(np.all((read[both] % written[both] == 0) | (written[both] % read[both] == 0)))


def _simulated(record: ReferenceSchedule) -> int:
    replay = simulate(record.dag, schedule_of(record), barrier=False)
    assert not replay.stalled, record.name
    return replay.makespan_cycles


def test_integral_rates_take_the_recorded_time_exactly() -> None:
    records = [r for r in reference_schedules() if r.simulated_makespan and _rates_are_integral(r.dag)]

    assert len(records) == 68
    for record in records:
        assert _simulated(record) == record.simulated_makespan, record.name


def test_fractional_rates_stay_within_one_percent_of_the_recorded_time() -> None:
    records = [r for r in reference_schedules() if r.simulated_makespan and not _rates_are_integral(r.dag)]

    assert len(records) == 40
    exact = 0
    for record in records:
        assert _simulated(record) == pytest.approx(record.simulated_makespan, rel=0.01), record.name
        exact += _simulated(record) == record.simulated_makespan
    assert exact == 36
