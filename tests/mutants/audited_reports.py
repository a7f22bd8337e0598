"""Small reports that together have every number of the schema, each with the audit that it has to pass."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import onnx

from dfcompile.audit.reports import audit_report
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import parse_dag
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.driver import explore
from dfcompile.lowering.execution.verification import Deviation, Effect
from dfcompile.options import Options, Timing
from dfcompile.records import replace as changed
from dfcompile.report.figures import Report
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.report.summary import summarize
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import Scheduling
from tests.asked_options import asked
from tests.onnx_text import model_from_text

NETWORK: Final = (
    "g (float[1,2,6,6] x) => (float[1,4] z) "
    "{ y = Conv(x, w) r = Relu(y) p = ReduceMean<keepdims=0>(r, axes) z = MatMul(p, v) }"
)
CLASSIFIER: Final = "g (float[16,24] x) => (float[16,32] z) { h = MatMul(x, u) z = Softmax(h) }"
MACHINE: Final = """name: small
chips: 3
accelerator:
  cores: 8
  lanes_per_core: 4
  stages_per_core: 2
  frequency_ghz: 0.8
  sram_bytes_per_core: 512
  price_usd_per_core: 3.5
  power_w_per_core: 0.7
dram:
  bandwidth_gb_per_s: 24
  capacity_bytes: 1e9
  price_usd_per_gb_per_s: 1.5
  power_w_per_gb_per_s: 0.16
network:
  kind: fc
  dimensions:
    - {chips: 3, link_bandwidth_gb_per_s: 40, link_power_w_per_gb_per_s: 0.05}
  link_price_usd_per_gb_per_s: 2
  switch_price_usd_per_gb_per_s: 24
  switch_power_w_per_gb_per_s: 0.052
  link_latency_ns: 1.5
"""
GRAPH: Final = """dfcompile-dag/1 audited
task a
task d
task s
task u
task j
buffer in
buffer out
task b
edge in -> a volume=4
edge a -> d volume=4
edge a -> s volume=4
edge s -> u volume=1
edge u -> j volume=3
edge d -> j volume=3
edge j -> out volume=12 bytes=2
edge out -> b volume=12
"""
LONG_STREAMS: Final = """dfcompile-dag/1 long
task a
task b
task c
edge a -> b volume=300000000
edge b -> c volume=200000000
"""


@dataclass(frozen=True, slots=True)
class Audited:
    """A report.

    Attributes:
        name: of what it shows.
        report: as it leaves.
        audit: raises an error for another report of the same run.
    """

    name: str
    report: Report
    audit: Callable[[Report], None]


def network_file(folder: Path) -> Path:
    """Return a small model of four operators, two of which have several expansions."""
    file = folder / "network.onnx"
    values = {"w": np.ones((3, 2, 3, 3), np.float32), "v": np.ones((3, 4), np.float32)}
    onnx.save(model_from_text(NETWORK, **values, axes=np.array([2, 3])), file)
    return file


def on_three_chips(folder: Path) -> Options:
    """Return a model on chips that exchange, each with SRAM for a part of it."""
    file, machine = folder / "classifier.onnx", folder / "machine.yaml"
    onnx.save(model_from_text(CLASSIFIER, u=np.ones((24, 32), np.float32)), file)
    machine.write_text(MACHINE)
    return asked(file, (4,), chips=(3,), system=str(machine))


def in_micro_batches(folder: Path) -> Options:
    """Return a model in four parts, of which one of three groups of elements runs two."""
    file = folder / "rows.onnx"
    onnx.save(model_from_text("g (float[N,6] x) => (float[N,6] z) { y = Relu(x) z = Softmax(y) }"), file)
    return asked(file, (7,), dims={"N": 8}, micro_batches="N=2/3")


def compiled(name: str, options: Options) -> Audited:
    """Return the report on a model."""
    exploration = explore(options)
    return Audited(name, summarize(exploration), partial(audit_report, exploration=exploration))


def verified(name: str, options: Options) -> Audited:
    """Return the report on a model as if outputs by hand had been compared: nothing is compiled."""
    wanted, found, moved = (np.array(values, np.float32) for values in ([4, 2, 1], [4, 1, 1], [2, 2, 1]))
    exploration = explore(options)
    deviation, effect = Deviation(1.0, 0.25, ((wanted, found),)), Effect(0.5, ((wanted, moved),))
    points = tuple(
        changed(point, variant=changed(point.variant, deviation=deviation, effect_of_inputs=effect))
        for point in exploration.points
    )
    exploration = changed(exploration, points=points)
    return Audited(name, summarize(exploration), partial(audit_report, exploration=exploration))


def scheduled(name: str, graph: str, *options: ScheduleOptions) -> Audited:
    """Return the report on schedules of a graph."""
    scheduling = Scheduling(parse_dag(graph))
    made = [scheduling.on(each) for each in options]
    audit = partial(audit_schedules, dag=scheduling.dag, schedules=made)
    return Audited(name, summarize_schedules(scheduling, made), audit)


def audited_reports(folder: Path) -> tuple[Audited, ...]:
    """Return all of them.

    Args:
        folder: for their files.
    """
    network = network_file(folder)
    return (
        verified("named expansions", asked(network, (3,), "Conv=im2col")),
        compiled("chosen expansions", asked(network, (4,), "auto", repeat=3)),
        compiled("three chips", on_three_chips(folder)),
        compiled("micro-batches", in_micro_batches(folder)),
        scheduled(
            "schedules",
            GRAPH,
            ScheduleOptions(2, simulated=True, what_if=(("ports=1", Hardware(ports=1)), ("latency=2", Hardware(2)))),
            ScheduleOptions(8, barrier=False, fifos=1, simulated=True),
            ScheduleOptions(2, timing=Timing.STEADY),
        ),
        scheduled("too large for a replay", LONG_STREAMS, ScheduleOptions(2, "best")),
    )
