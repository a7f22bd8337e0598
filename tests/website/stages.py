"""A canonical DAG, written down, on six processing elements: scheduled, checked, measured."""

from dfcompile.canonical_dag import parse_dag
from dfcompile.scheduler import ScheduleOptions, check, figures, schedule, schedule_non_streaming

MATRIX_VECTOR = """dfcompile-dag/1 matrix-vector
buffer x
buffer weight
elementwise broadcast
downsampler mv[0:4]
upsampler gather
buffer y
edge x -> broadcast volume=6
edge broadcast -> mv[0:4] volume=6
edge weight -> mv[0:4] volume=6
edge mv[0:4] -> gather volume=1
edge gather -> y volume=4
"""

dag = parse_dag(MATRIX_VECTOR)
found = schedule(dag, ScheduleOptions(pes=6, partition="best"))
check(dag, found)  # knows nothing of how it was found
measured = figures(dag, found, schedule_non_streaming(dag, 6))

print(f"{measured.makespan_cycles} cycles, no schedule takes fewer than {measured.lower_bound_cycles}")
