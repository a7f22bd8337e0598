"""Streaming schedules of canonical DAGs: spatial blocks, times, FIFO sizes, baseline, checker, figures."""

from dfcompile.options import Timing as Timing
from dfcompile.scheduler.baseline import schedule_non_streaming as schedule_non_streaming
from dfcompile.scheduler.blocks import Blocks as Blocks
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles as lower_bound_cycles
from dfcompile.scheduler.checker import check as check
from dfcompile.scheduler.checker import check_non_streaming as check_non_streaming
from dfcompile.scheduler.evaluation import ScheduleFigures as ScheduleFigures
from dfcompile.scheduler.evaluation import figures as figures
from dfcompile.scheduler.options import ScheduleOptions as ScheduleOptions
from dfcompile.scheduler.partitioner import Partitioner as Partitioner
from dfcompile.scheduler.partitioner import collect_partitioners as collect_partitioners
from dfcompile.scheduler.partitioner import partitioner as partitioner
from dfcompile.scheduler.partitioner import registered_partitioners as registered_partitioners
from dfcompile.scheduler.schedules import NO_PE as NO_PE
from dfcompile.scheduler.schedules import NonStreamingSchedule as NonStreamingSchedule
from dfcompile.scheduler.schedules import Schedule as Schedule
from dfcompile.scheduler.streaming_schedule import schedule as schedule
