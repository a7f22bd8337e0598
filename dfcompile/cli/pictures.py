"""The files that --trace and --gantt write."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from dfcompile.api.scheduled import ScheduleResult


def schedule_pictures(found: ScheduleResult, trace: Path | None, gantt: Path | None) -> Mapping[Path, str]:
    """Return the trace and the Gantt chart of a schedule, by file, as far as they are asked for."""
    pictures = {}
    if trace is not None:
        pictures[trace] = found.trace()
    if gantt is not None:
        pictures[gantt] = found.gantt().svg
    return MappingProxyType(pictures)
