"""The files that --trace and --gantt write."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from dfcompile.api.scheduled import ScheduleResult
from dfcompile.options import Pictures


def schedule_pictures(found: ScheduleResult, asked: Pictures) -> Mapping[Path, str]:
    """Return the trace and the Gantt chart of a schedule, by file, as far as they are asked for."""
    pictures = {}
    if asked.trace is not None:
        pictures[asked.trace] = found.trace()
    if asked.gantt is not None:
        pictures[asked.gantt] = found.gantt().svg
    return MappingProxyType(pictures)
