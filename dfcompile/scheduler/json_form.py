"""The JSON form of a schedule: where and when each node runs, which edges are streamed."""

from collections.abc import Iterator

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.host.printable import json_text
from dfcompile.scheduler import NO_PE, Schedule

FORMAT = "dfcompile-schedule/1"


def schedule_to_json(dag: CanonicalDag, schedule: Schedule) -> str:
    """Return a schedule as JSON text, one node or edge per line; times in cycles, capacities in elements."""
    head = {
        "format": FORMAT,
        "dag": dag.name,
        "pes": schedule.pes,
        "partition": schedule.partition,
        "timing": schedule.timing.value,
        "barriers": schedule.barrier,
        "blocks": schedule.blocks_count,
        "makespan_cycles": schedule.makespan_cycles,
    }
    opening = json_text(head)[:-1]
    nodes = ",\n".join(_nodes(dag, schedule))
    edges = ",\n".join(_edges(dag, schedule))
    return f'{opening}, "nodes": [\n{nodes}\n], "edges": [\n{edges}\n]}}\n'


def _nodes(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    names = ("block", "pe", "start", "first_out", "last_out")
    columns = (getattr(schedule, name).tolist() for name in names)
    for number, values in enumerate(zip(*columns, strict=True)):
        record = {"name": dag.node_name(number), **dict(zip(names, values, strict=True))}
        yield json_text({**record, "pe": None} if record["pe"] == NO_PE else record)


def _edges(dag: CanonicalDag, schedule: Schedule) -> Iterator[str]:
    columns = (dag.edge_source, dag.edge_target, dag.edge_volume, schedule.streamed, schedule.fifo_capacity)
    for source, target, *figures in zip(*(column.tolist() for column in columns), strict=True):
        ends = {"source": dag.node_name(source), "target": dag.node_name(target)}
        yield json_text({**ends, **dict(zip(("volume", "streamed", "fifo_elements"), figures, strict=True))})
