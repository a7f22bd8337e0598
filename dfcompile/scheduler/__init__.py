"""Streaming schedules of canonical DAGs: spatial blocks, times, FIFO sizes, baseline, checker, figures."""

from dfcompile.options import Timing
from dfcompile.scheduler.baseline import schedule_non_streaming
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.checker import check, check_non_streaming
from dfcompile.scheduler.evaluation import ScheduleFigures, figures
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.partitioner import Partitioner, collect_partitioners, partitioner, registered_partitioners
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule, Schedule
from dfcompile.scheduler.streaming_schedule import schedule

__all__ = [
    "NO_PE",
    "Blocks",
    "NonStreamingSchedule",
    "Partitioner",
    "Schedule",
    "ScheduleFigures",
    "ScheduleOptions",
    "Timing",
    "check",
    "check_non_streaming",
    "collect_partitioners",
    "figures",
    "lower_bound_cycles",
    "partitioner",
    "registered_partitioners",
    "schedule",
    "schedule_non_streaming",
]
