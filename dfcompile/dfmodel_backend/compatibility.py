"""Which flaws of DFModel a figure repeats; the default repeats none [ko24]."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from dfcompile.errors import UserError, nearest
from dfcompile.records import replace


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Switches, each the opposite of a correction in `CORRECTIONS`, and factors that older code fixed.

    A factor of 0 follows the design's own choice (``separate_rs_ag_for_ar``: 2 if set, else 1).
    """

    all_reduce_factor: int = 0
    periodic_factor: int = 0
    periodic_factor_ignored_when_fully_connected: bool = False
    domain_ignores_factor_and_kind: bool = False
    lone_chip_communicates: bool = False
    periodic_bandwidth_forgotten: bool = False
    torus_bisection_of_other_dimension: bool = False
    torus_bisection_halved: bool = False
    fully_connected_bisection_of_all_links: bool = False
    messages_of_all_pairs: bool = False
    outermost_bandwidth_quartered: bool = False
    fourth_dimension_free: bool = False
    innermost_links_of_all_copies: bool = False
    network_is_sum: bool = False
    all_to_all_as_given: bool = False
    layouts_change_by_share: bool = False
    layouts_by_letter: bool = False
    gathers_without_latency: bool = False
    tile_size_is_a_hint: bool = False
    sram_of_other_edges: bool = False
    streams_read_once: bool = False
    weights_not_read: bool = False
    weights_of_one_tile: bool = False
    other_tensors_ignored: bool = False
    gradients_not_kept: bool = False
    backward_weights_counted_again: bool = False
    optimizer_states_ignored: bool = False
    in_flight_activations_ignored: bool = False
    heads_may_be_cut: bool = False
    sharding_ties_whole: bool = False
    sharding_of_fewest_bytes: bool = False
    kernels_multiply_traffic: bool = False
    skipped_weights_take_pmus: bool = False
    sram_extra_takes_no_pmus: bool = False


CORRECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "periodic_factor_ignored_when_fully_connected": (
            "gradient all-reduces on fully connected dimensions count reduce-scatter and all-gather apart, as on others"
        ),
        "domain_ignores_factor_and_kind": (
            "all-reduces that start in a high-bandwidth domain obey the shape of each dimension and the factor of two "
            "phases"
        ),
        "lone_chip_communicates": (
            "a group of one chip exchanges nothing, also where links are not those of a ring, and a pipeline of one "
            "stage hands nothing on"
        ),
        "periodic_bandwidth_forgotten": (
            "gradient all-reduces of recommendation models take the bandwidth of the links, not 1 GB/s"
        ),
        "torus_bisection_of_other_dimension": (
            "a cut through one dimension of a torus crosses the rings of that dimension, not those of another"
        ),
        "torus_bisection_halved": "a cut through a ring crosses two links",
        "fully_connected_bisection_of_all_links": (
            "a cut through a fully connected group crosses a quarter of the square of its chips, not every link"
        ),
        "messages_of_all_pairs": "of an all-to-all only messages from one half to the other cross the cut",
        "outermost_bandwidth_quartered": "a switch offers every port to an all-to-all, not a quarter of them",
        "fourth_dimension_free": "links and switches of the fourth dimension cost money and power",
        "innermost_links_of_all_copies": "links of the innermost dimension are paid once per copy of the workload",
        "network_is_sum": "tensor and data parallel groups have links of their own and exchange at the same time",
        "all_to_all_as_given": "an all-to-all of a recommendation model divides its bytes among the chips",
        "layouts_change_by_share": (
            "a tensor that changes its layout is exchanged whole: an all-gather brings every chip the shares of all "
            "others, an all-to-all a part of each"
        ),
        "layouts_by_letter": (
            "layouts follow the axes of tensors: an operand that all products share is needed whole where products are "
            "split, and chips that share a normalization or a softmax exchange statistics"
        ),
        "gathers_without_latency": "a change of layout waits for the links on its way, as an all-reduce does",
        "tile_size_is_a_hint": "a given tile size is kept, not only bounded from above",
        "sram_of_other_edges": "SRAM of a tensor is that of its own edge, not of the edge with its weight's number",
        "streams_read_once": "a kernel whose weights come in tiles reads its other operand once per tile",
        "weights_not_read": "weights are read from DRAM once per configuration and micro-batch",
        "weights_of_one_tile": "weights and gradients that are cut into tiles count whole, not one tile of them",
        "other_tensors_ignored": (
            "weights, and tensors that wait, lie in DRAM beside the matrix or vector of HPL and FFT"
        ),
        "gradients_not_kept": (
            "gradients of weights lie in DRAM, and each micro-batch reads and writes them to add its own"
        ),
        "backward_weights_counted_again": "the backward pass has the weights of the forward pass, not its own",
        "optimizer_states_ignored": (
            "training keeps a 32-bit copy and two 32-bit moments of each parameter in DRAM [rajbhandari20]"
        ),
        "in_flight_activations_ignored": (
            "what the backward pass needs stays in DRAM for every layer and micro-batch of the pipeline"
        ),
        "sharding_ties_whole": "of shardings that move equally many bytes the one that splits the most output is taken",
        "sharding_of_fewest_bytes": (
            "of the shardings of fewest bytes and of least time the one is taken with which a batch takes least time"
        ),
        "heads_may_be_cut": "tensor parallel chips share whole heads of attention",
        "kernels_multiply_traffic": (
            "on a chip of PMUs a tensor is moved once per weight tile, not once per kernel of the configuration"
        ),
        "skipped_weights_take_pmus": "weights that take no SRAM take no PMUs",
        "sram_extra_takes_no_pmus": "what a design adds to the SRAM of a configuration takes PMUs",
    }
)

RIGHT = Compatibility()

# What the newest code does; `dataclasses.replace` sets the habits of older code on top.
ORIGINAL = Compatibility(
    periodic_factor_ignored_when_fully_connected=True,
    domain_ignores_factor_and_kind=True,
    lone_chip_communicates=True,
    periodic_bandwidth_forgotten=True,
    torus_bisection_of_other_dimension=True,
    fourth_dimension_free=True,
    innermost_links_of_all_copies=True,
    layouts_change_by_share=True,
    layouts_by_letter=True,
    gathers_without_latency=True,
    tile_size_is_a_hint=True,
    sram_of_other_edges=True,
    weights_not_read=True,
    weights_of_one_tile=True,
    other_tensors_ignored=True,
    gradients_not_kept=True,
    backward_weights_counted_again=True,
    optimizer_states_ignored=True,
    in_flight_activations_ignored=True,
    heads_may_be_cut=True,
    sharding_ties_whole=True,
    sharding_of_fewest_bytes=True,
    kernels_multiply_traffic=True,
    skipped_weights_take_pmus=True,
    sram_extra_takes_no_pmus=True,
)

PRESETS: Mapping[str, Compatibility] = MappingProxyType({"right": RIGHT, "dfmodel": ORIGINAL})


def parse_compatibility(text: str) -> Compatibility:
    """Read a preset and switches such as ``dfmodel,network-is-sum,no-weights-not-read,all-reduce-factor=2``.

    Raises:
        UserError: an unknown word, or a factor that is none.

    >>> parse_compatibility("dfmodel,periodic-factor=2").periodic_factor
    2
    """
    found = RIGHT
    names = [field.name for field in fields(Compatibility)]
    factors = [name for name in names if name.endswith("_factor")]
    for word in text.split(","):
        name, equals, value = word.strip().removeprefix("no-").replace("-", "_").partition("=")
        if word.strip() in PRESETS:
            found = PRESETS[word.strip()]
        elif name in factors and equals:
            if value not in ("0", "1", "2"):
                raise UserError(f"--compat {word.strip()!r}: found {value!r} against 0, 1 or 2")
            found = _with(found, name, int(value))
        elif name in names and name not in factors and not equals:
            found = _with(found, name, not word.strip().startswith("no-"))
        else:
            known = [*PRESETS, *(f"{one}=2" if one in factors else one for one in names)]
            hint = nearest(word, [one.replace("_", "-") for one in known])
            raise UserError(f"--compat {word.strip()!r}: unknown{hint}")
    return found


def _with(compatibility: Compatibility, name: str, value: int) -> Compatibility:
    return replace(compatibility, **{name: value})  # type: ignore[arg-type]  # switches are bool, factors int
