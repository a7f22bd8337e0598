"""Mutants of shardings: layouts, conversions, shares, the search, and what is charged of all chips."""

from tests.mutants.mutant import Mutant

_EVALUATOR = "dfmodel_backend/evaluate/graphs.py"
_SPLITS = "dfmodel_backend/inter_chip/splits.py"
_CONVERSIONS = "dfmodel_backend/inter_chip/conversions.py"
_KERNELS = "dfmodel_backend/sharding/graphs.py"
_GRAPHS = "dfmodel_backend/sharding/graphs.py"
_SEARCH = "dfmodel_backend/solve/sharding_search.py"
_SUMS = "dfmodel_backend/solve/sharding_search.py"
_MAPPINGS = "dfmodel_backend/check/mappings.py"
_EXCHANGES = "dfmodel_backend/check/collectives.py"
_NESTS = "lowering/operators/loop_nest.py"

SHARDING = (
    Mutant(_EVALUATOR, "for config in configs) * used.chips,", "for config in configs),"),
    Mutant(_EVALUATOR, "else share.moved_bytes,", "else share.network_bytes,"),
    Mutant(_MAPPINGS, "one_chip_bytes * mapping.chips)", "one_chip_bytes)"),
    Mutant(_MAPPINGS, "found, expected = mapping.figures.exchanges, graph.", "found = expected = mapping.figures."),
    Mutant(
        _CONVERSIONS,
        "self._cost(kind, place)\n        return size_bytes * per_byte + latency_ns",
        "self._cost(kind, place)\n        return size_bytes * per_byte",
    ),
    Mutant(_CONVERSIONS, "return 2 * (count - 1) * elements * copies", "return (count - 1) * elements * copies"),
    Mutant(_CONVERSIONS, "if self._group.shape.is_grid or not place:", "if True or not place:"),
    Mutant(_CONVERSIONS, "there |= dict.fromkeys(step.after for step in ways[target])", "pass"),
    Mutant(_SPLITS, "return largest_share(splits, elements) <= most", "return largest_share(splits, elements) >= 0"),
    Mutant(_SPLITS, "block = -(-block // count)", "block = block // count"),
    Mutant(_GRAPHS, "for layout in (given, *targets))", "for layout in (given,))"),
    Mutant(
        _GRAPHS,
        "held = sum(share_elements(layout, elements) for layout in different) if different else elements",
        "held = -(-elements // self.chips[0])",
    ),
    Mutant(_KERNELS, "sizes[loop.part] = sizes[loop.part] // loop.extent * left", "pass"),
    Mutant(_SEARCH, "return one.rank[1:] < other.rank[1:]", "return one.rank[1:] > other.rank[1:]"),
    Mutant(_SEARCH, "best.bound_s = min(best.bound_s, least_s)", "pass"),
    Mutant(_EXCHANGES, "if exchange.time_ns < at_least_ns", "if exchange.time_ns < 0 * at_least_ns"),
    Mutant(
        _SUMS,
        "is_unavoidable = tensor.kind is TensorKind.OUTPUT or (",
        "is_unavoidable = tensor.kind is not None or (",
    ),
    Mutant(_SPLITS, "if key[:half] != key[half:]", "if key[:half] == key[half:]"),
    Mutant(_NESTS, "if stride < 1 or self.elements % period:", "if stride < 1:"),
    Mutant(_NESTS, "if 0 <= low <= high < stride else None", "if 0 <= low <= high else None"),
)
