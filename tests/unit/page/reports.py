"""Small reports as JSON, with names that somebody hostile chose."""

from dfcompile.report.plain_values import Json
from dfcompile.visualization.dataflow import Dataflow, DataflowEdge, DataflowNode

HOSTILE = (
    '</script><script>document.title="owned"</script>',
    "<img src=x onerror='document.title=\"owned\"'>",
    '"><svg onload=document.title="owned">',
    "{{ 7 * 7 }}",
    "a\u202eb\u2066c\u200b",
    "\x00\x1b[31m\x9b\ud800",
    "javascript:document.title='owned'",
    "__proto__",
)


def kernel(names: list[Json], flop: int, dram_bytes: int, time_s: float, bound_by: str) -> dict[str, Json]:
    """Some equal kernels."""
    return {
        "kernels": names, "count": len(names), "op": "MatMul", "flop": flop, "dram_bytes": dram_bytes,
        "chip_bytes": 2 * flop, "network_bytes": 0, "time_s": time_s, "compute_s": time_s, "memory_s": time_s,
        "network_s": 0, "bound_by": bound_by,
    }  # fmt: skip


def result(pes: int, makespan: int, expansions: dict[str, Json], origin: str = "conv1") -> dict[str, Json]:
    """A result of ``dfcompile MODEL``."""
    return {
        "pes": pes,
        "expansions": expansions,
        "makespan_cycles": makespan,
        "schedule": {
            "partition": "best",
            "makespan_cycles": makespan,
            "lower_bound_cycles": makespan - 100,
            "gap": 0.01,
            "io_bytes": 4000 + pes,
            "pe_utilization": 0.5,
            "speedup": 3.25,
            "fifo_elements": 77,
        },
        "over_expansions": {
            "lower_bound_cycles": 500,
            "hints": [],
            "operators": [
                {
                    "operator": origin,
                    "least_work_cycles": 10,
                    "more_work_cycles": 2,
                    "waiting_cycles": 0,
                    "idle_cycles": 5,
                }
            ],
        },
        "mapping": {
            "time_s": makespan * 1e-9,
            "gap": 0.01,
            "bound_time_s": makespan * 0.9e-9,
            "ideal_time_s": makespan * 0.5e-9,
            "cost_usd": 300.0 + pes / 8,
            "configurations": [
                {"kernels": [origin], "time_s": 3e-6, "compute_s": 3e-6, "memory_s": 1e-6, "bound_by": "compute"},
                {"kernels": ["fc"], "time_s": 1e-6, "compute_s": 0.5e-6, "memory_s": 1e-6, "bound_by": "memory"},
            ],
            "kernels": [
                kernel([origin], 172800, 4096, 1.8479e-5, "compute"),
                kernel([f"{origin}.relu", f"{origin}.relu_1"], 3456, 0, 3.456e-6, "compute"),
                kernel(["fc"], 2000, 1000, 1e-6, "memory"),
                kernel(["add"], 500, 2000, 2e-6, "memory"),
            ],
            "roofs": {"flop_per_s": 2e9 * pes, "dram_bytes_per_s": 1e9, "network_bytes_per_s": 0},
        },
    }


def model_report(name: str = "lenet", origin: str = "conv1") -> dict[str, Json]:
    """A report of two lowerings on two numbers of PEs."""
    results: list[Json] = [
        result(pes, makespan, {"MatMul": matmul, "Conv": "im2col"}, origin)
        for pes, matmul, makespan in ((16, "mv", 9000), (16, "ip", 7000), (64, "mv", 4100), (64, "ip", 3750))
    ]
    return {
        "format": "dfcompile-report/4",
        "model": {"name": name, "nodes": 3},
        "results": results,
        "assumptions": [{"name": "processing element", "value": origin, "source": "[dematteis23]"}],
    }


def operators_report(operators: int) -> dict[str, Json]:
    """A report of one result with so many operators that hold PEs, of which each second moves something."""
    one = result(64, 3750, {"MatMul": "mv"})
    held: list[Json] = [
        {
            "operator": f"op{at}",
            "least_work_cycles": 10 + at,
            "more_work_cycles": at,
            "waiting_cycles": 1,
            "idle_cycles": 2,
        }
        for at in range(operators)
    ]
    moved: list[Json] = [
        {"operator": f"op{at}", "least_bytes": 100 * (at + 1), "excess_bytes": at, "moved_bytes": 101 * (at + 1)}
        for at in range(0, operators, 2)
    ]
    one["over_expansions"] = {"lower_bound_cycles": 500, "hints": [], "operators": held}
    return {**model_report(), "results": [{**one, "traffic": {"operators": moved}}]}


def swept_report(counts: tuple[int, ...] = (4, 8, 16, 32)) -> dict[str, Json]:
    """A report of two lowerings on several numbers of PEs; FIFOs are as large everywhere."""
    results: list[Json] = [
        result(pes, 60_000 // pes + longer, {"MatMul": matmul, "Conv": "im2col"})
        for pes in counts
        for matmul, longer in (("mv", 300), ("ip", 0))
    ]
    return {**model_report(), "results": results}


def sharded_report(name: str = "qkv") -> dict[str, Json]:
    """A report of one result on 2 x 4 chips, whose kernel is split over both dimensions of the network."""
    report = model_report()
    one = result(64, 3750, {"MatMul": "mv"}, name)
    mapping = one["mapping"]
    assert isinstance(mapping, dict)
    mapping["network_chips"] = [4, 2]
    mapping["roofs"] = {"flop_per_s": 128e9, "dram_bytes_per_s": 1e9, "network_bytes_per_s": 5e8}
    mapping["kernels"] = [
        {**kernel([name], 2000, 1000, 1e-6, "memory"), "network_bytes": 62.5},
        kernel(["softmax"], 500, 0, 1e-6, "compute"),
    ]
    mapping["sharding"] = [
        {
            "configuration": 0, "kernel": name, "tensor": tensor, "access": access, "held": list(held),
            "elements": 4096, "chip_elements": chip_elements,
        }
        for tensor, access, held, chip_elements in (
            ("x", "read", ("split by axis 0", "whole"), 1024),
            ("w", "read", ("whole", "whole"), 4096),
            ("y", "written", ("split by axis 0", "partial over k, to be combined by sum"), 1024),
        )
    ]  # fmt: skip
    return {**report, "results": [one]}


def exploration_report(points: int) -> dict[str, Json]:
    """A Pareto set of so many points."""
    front: list[Json] = [
        {
            "pes": 1 + place % 64,
            "on_chip_memory_bytes": 1024 * (1 + place % 3),
            "makespan_cycles": 1_000_000 - 100 * place,
            "io_bytes": 1000 + 7 * place,
            "area_pes": 10 + place,
            "expansions": f"MatMul=mv Conv=direct conv{place % 7}:Conv=im2col",
            "choices": {"MatMul": "mv", "Conv": "direct", f"conv{place % 7}:Conv": "im2col"},
            "on_chip": [f"tensor{place % 5}", "weights"],
        }
        for place in range(points)
    ]
    return {
        "schema": "dfcompile-exploration/2",
        "model": "lenet",
        "objectives": ["makespan", "io", "area"],
        "front": front,
        "pes": [16, 64],
        "on_chip_memory_bytes": [16384, 65536],
        "granularities": ["declared"],
        "finer_tasks": [{"pes": 16, "found_cycles": 9000, "pieces": 64, "estimated_cycles": 3000}],
        "schedules": 18,
        "combinations": 81,
        "not_excluded": 3,
        "tries": 40,
        "of_tries": 100,
        "gap": 0.02,
        "assumptions": ["area: 0.5 x on-chip memory [asa23]"],
    }


def bounds_report(shapes: int, buffers: int = 12) -> dict[str, Json]:
    """Bounds of so many products for so many buffers; the curve of each has ten times as many sizes."""
    operators: list[Json] = []
    curves: list[Json] = []
    for shape in range(shapes):
        name, least = f"gemm {shape},{shape},{shape}", 1000 * (1 + shape)
        sizes = [2 ** (4 + at) for at in range(buffers)]
        operators += [
            {
                "operator": name, "type": "product", "buffer_bytes": size, "proved_bytes": least + 2**20 // size,
                "tiling_bytes": least + 2**21 // size, "compulsory_bytes": least, "effectual_buffer_bytes": 2**20,
                "operations": 10**6, "operations_per_byte": 10**6 / (least + 2**21 // size),
            }
            for size in sizes
        ]  # fmt: skip
        places = [16 + 8 * at for at in range(10 * buffers)]
        moved: list[Json] = [least + 2**21 // size for size in places]
        curves.append({"name": name, "operations": 10**6, "buffer_bytes": list(places), "traffic_bytes": moved})
    subject = ", ".join(f"gemm {shape},{shape},{shape}" for shape in range(shapes))
    return {"schema": "dfcompile-bounds/1", "subject": subject, "operators": operators, "curves": curves}


def language_model_report(steps: int, kernels: int = 6) -> dict[str, Json]:
    """Steps of so many kernels in a layer, of 32, with an exchange in each step."""
    made: list[Json] = []
    for step in range(steps):
        own: list[Json] = [
            {
                "name": f"kernel{at}", "part": "layer", "count": 32, "macs": 1000 * (at + 1),
                "bytes": 100 * (at + 1) ** 2, "time_s": 1e-6 * (1 + at), "bound": "Memory" if at % 2 else "Compute",
            }
            for at in range(kernels)
        ]  # fmt: skip
        store: Json = {"name": "store", "part": "layer", "count": 32, "time_s": 1e-6, "bound": "Async"}
        busy, exchanged = 32e-6 * kernels * (kernels + 1) / 2, 1e-4
        made.append(
            {
                "step": f"decode {step}", "chips": 2, "degrees": "TP2", "degrees_tried": 3, "degrees_infeasible": 1,
                "time_s": busy + exchanged, "exchange_s": exchanged, "tokens_per_s": 1234.5678,
                "mac_utilisation": 0.123456, "memory_utilisation": 0.923456,
                "chip_weight_bytes": 8 * 10**9, "chip_kv_bytes": 10**9 // 3,
                "kernels": [*own, store], "parts": [{"part": "layer", "count": 32, "transfers_exposed_s": 0}],
                "assumptions": [],
            }
        )  # fmt: skip
    system: Json = {"name": "h100-sxm", "bytes_per_s": 1e9, "macs_per_s": {"bf16": 1e10}, "capacity_bytes": 8 * 10**10}
    return {"format": "dfcompile-language-model/1", "model": {"name": "llama"}, "system": system, "steps": made}


def design_report(configurations: int, kernels: int = 2) -> dict[str, Json]:
    """A design of so many configurations, of so many kernels each."""
    sets: list[Json] = []
    made: list[Json] = []
    for at in range(configurations):
        names: list[Json] = [f"k{at}.{one}" for one in range(kernels)]
        bound_by = "memory" if at % 2 else "compute"
        times: dict[str, Json] = {"time_s": 0.019009109 * (at + 1), "compute_s": 0.01, "memory_s": 0.015 * (at + 1)}
        sets.append({"configuration": at, "kernels": names, "bound_by": bound_by, "network_s": 0, **times})
        made += [
            {
                "name": name, "configuration": at, "sharding": "-", "exchange": "", "flop": 1e9 * (1 + place),
                "dram_bytes": 12345.678, "time_s": 0.02, "bound_by": bound_by,
            }
            for place, name in enumerate(names)
        ]  # fmt: skip
    figures: Json = {
        "chips": 1024, "tensor_parallel": 1, "pipeline_parallel": 4, "time_s": 0.3545, "utilization": 0.0965,
        "cost_usd": 43950336, "chip_flop_per_s": 1e13, "dram_bytes_per_s": 1e9,
    }  # fmt: skip
    return {
        "format": "dfcompile-design/1", "name": "gpt", "figures": figures, "configurations": sets, "kernels": made,
        "search": {"gap": 0},
    }  # fmt: skip


def dataflow(configurations: int, operators: int, families: int, name: str = "conv") -> Dataflow:
    """A chain of operators, each of so many families and an array that the first of them writes."""
    nodes: list[DataflowNode] = []
    edges: list[DataflowEdge] = []
    for operator in range(operators):
        own, configuration = f"{name}{operator}", operator * configurations // operators
        first = len(nodes)
        nodes += [DataflowNode(f"{own}.{part}", own, "elementwise", 4, configuration) for part in range(families)]
        nodes.append(DataflowNode(f"{own}_out", own, "buffer", 1, configuration))
        edges += [DataflowEdge(at, at + 1, 4, 4000, in_memory=False) for at in range(first, first + families - 1)]
        edges.append(DataflowEdge(first + families - 1, first + families, 4, 4000, in_memory=True))
        if operator:
            edges.append(DataflowEdge(first - 1, first, 4, 12345 + operator, in_memory=True))
    return Dataflow(name, "elements", tuple(nodes), tuple(edges))
