"""The peak of a FIFO against its definition, however the traffic is cut."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.scheduler.simulation.stretch import PeakMeter

gaps = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=30)


def _delays_nothing(puts: list[int], reads: list[int], capacity: int, between: int) -> bool:
    return all(reads[number - capacity] + between <= puts[number] for number in range(capacity, len(puts)))


@given(gaps, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4), st.booleans())
def test_peak_is_the_smallest_capacity_that_delays_nothing(
    steps: list[tuple[int, int, int]], cuts: list[tuple[int, int]], hand_over: bool
) -> None:
    puts = np.cumsum([put for put, _, _ in steps])
    reads = np.maximum.accumulate(puts + [wait for _, _, wait in steps]) + np.arange(len(steps))
    count = len(steps)
    meter = PeakMeter(count + 1, hand_over=hand_over)
    places = [0, *sorted(min(put, count) for put, _ in cuts), count]
    # An element is written before it is read, so no cut has more reads than writes.
    taken = [0, *(min(read, place) for (_, read), place in zip(sorted(cuts), places[1:], strict=False)), count]
    taken = np.minimum(np.maximum.accumulate(taken), places).tolist()
    for number in range(1, len(places)):
        meter.add(puts[places[number - 1] : places[number]], reads[taken[number - 1] : taken[number]])

    expected = next(
        size for size in range(1, count + 1) if _delays_nothing(puts.tolist(), reads.tolist(), size, not hand_over)
    )
    assert meter.peak == expected


def test_repeated_traffic_peaks_as_if_written_out() -> None:
    puts, reads = np.array([1, 2, 3]), np.array([9, 10, 11])
    repeated, written_out = PeakMeter(100, hand_over=True), PeakMeter(100, hand_over=True)

    repeated.add_repeated(puts, reads, 50, (4, 4))
    repeated.add(puts + 200, reads + 203)
    for number in range(50):
        written_out.add(puts + 4 * number, reads + 4 * number)
    written_out.add(puts + 200, reads + 203)

    assert repeated.peak == written_out.peak == 6
