"""Which flaws of DFModel a figure repeats; the default repeats none [ko24]."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from dfcompile.errors import UserError, nearest
from dfcompile.records import replace

_CORRECTION, _IS_OLDER = "correction", "is older"  # what is said of each switch


def _flaw(correction: str, *, is_older: bool = False) -> bool:
    """Return a switch, off by default.

    Args:
        correction: what is right instead.
        is_older: whether the newest code of the original does not have the flaw any more.
    """
    return field(default=False, metadata={_CORRECTION: correction, _IS_OLDER: is_older})


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Switches, each the opposite of a correction in `CORRECTIONS`, and factors that older code fixed.

    A factor of 0 follows the design's own choice (``separate_rs_ag_for_ar``: 2 if set, else 1).
    """

    all_reduce_factor: int = 0
    periodic_factor: int = 0
    periodic_factor_ignored_when_fully_connected: bool = _flaw(
        "gradient all-reduces on fully connected dimensions count reduce-scatter and all-gather apart, as on others"
    )
    domain_ignores_factor_and_kind: bool = _flaw(
        "all-reduces that start in a high-bandwidth domain obey the shape of each dimension and the factor of two "
        "phases"
    )
    lone_chip_communicates: bool = _flaw(
        "a group of one chip exchanges nothing, also where links are not those of a ring, and a pipeline of one stage "
        "hands nothing on"
    )
    periodic_bandwidth_forgotten: bool = _flaw(
        "gradient all-reduces of recommendation models take the bandwidth of the links, not 1 GB/s"
    )
    torus_bisection_of_other_dimension: bool = _flaw(
        "a cut through one dimension of a torus crosses the rings of that dimension, not those of another"
    )
    torus_bisection_halved: bool = _flaw("a cut through a ring crosses two links", is_older=True)
    fully_connected_bisection_of_all_links: bool = _flaw(
        "a cut through a fully connected group crosses a quarter of the square of its chips, not every link",
        is_older=True,
    )
    messages_of_all_pairs: bool = _flaw(
        "of an all-to-all only messages from one half to the other cross the cut", is_older=True
    )
    outermost_bandwidth_quartered: bool = _flaw(
        "a switch offers every port to an all-to-all, not a quarter of them", is_older=True
    )
    fourth_dimension_free: bool = _flaw("links and switches of the fourth dimension cost money and power")
    innermost_links_of_all_copies: bool = _flaw(
        "links of the innermost dimension are paid once per copy of the workload"
    )
    network_is_sum: bool = _flaw(
        "tensor and data parallel groups have links of their own and exchange at the same time", is_older=True
    )
    all_to_all_as_given: bool = _flaw(
        "an all-to-all of a recommendation model divides its bytes among the chips", is_older=True
    )
    layouts_change_by_share: bool = _flaw(
        "a tensor that changes its layout is exchanged whole: an all-gather brings every chip the shares of all "
        "others, an all-to-all a part of each"
    )
    layouts_by_letter: bool = _flaw(
        "layouts follow the axes of tensors: an operand that all products share is needed whole where products are "
        "split, and chips that share a normalization or a softmax exchange statistics"
    )
    gathers_without_latency: bool = _flaw("a change of layout waits for the links on its way, as an all-reduce does")
    tile_size_is_a_hint: bool = _flaw("a given tile size is kept, not only bounded from above")
    sram_of_other_edges: bool = _flaw(
        "SRAM of a tensor is that of its own edge, not of the edge with its weight's number"
    )
    streams_read_once: bool = _flaw(
        "a kernel whose weights come in tiles reads its other operand once per tile", is_older=True
    )
    weights_not_read: bool = _flaw("weights are read from DRAM once per configuration and micro-batch")
    weights_of_one_tile: bool = _flaw("weights and gradients that are cut into tiles count whole, not one tile of them")
    other_tensors_ignored: bool = _flaw(
        "weights, and tensors that wait, lie in DRAM beside the matrix or vector of HPL and FFT"
    )
    gradients_not_kept: bool = _flaw(
        "gradients of weights lie in DRAM, and each micro-batch reads and writes them to add its own"
    )
    backward_weights_counted_again: bool = _flaw("the backward pass has the weights of the forward pass, not its own")
    optimizer_states_ignored: bool = _flaw(
        "training keeps a 32-bit copy and two 32-bit moments of each parameter in DRAM [rajbhandari20]"
    )
    in_flight_activations_ignored: bool = _flaw(
        "what the backward pass needs stays in DRAM for every layer and micro-batch of the pipeline"
    )
    sharding_ties_whole: bool = _flaw(
        "of shardings that move equally many bytes the one that splits the most output is taken"
    )
    sharding_of_fewest_bytes: bool = _flaw(
        "of the shardings of fewest bytes and of least time the one is taken with which a batch takes least time"
    )
    heads_may_be_cut: bool = _flaw("tensor parallel chips share whole heads of attention")
    kernels_multiply_traffic: bool = _flaw(
        "on a chip of PMUs a tensor is moved once per weight tile, not once per kernel of the configuration"
    )
    skipped_weights_take_pmus: bool = _flaw("weights that take no SRAM take no PMUs")
    sram_extra_takes_no_pmus: bool = _flaw("what a design adds to the SRAM of a configuration takes PMUs")


_SWITCHES = tuple(one for one in fields(Compatibility) if one.metadata)
CORRECTIONS: Mapping[str, str] = MappingProxyType({one.name: one.metadata[_CORRECTION] for one in _SWITCHES})

RIGHT = Compatibility()
# What the newest code does; `dataclasses.replace` sets the habits of older code on top.
ORIGINAL = Compatibility(**{one.name: not one.metadata[_IS_OLDER] for one in _SWITCHES})

PRESETS: Mapping[str, Compatibility] = MappingProxyType({"right": RIGHT, "dfmodel": ORIGINAL})


def parse_compatibility(text: str) -> Compatibility:
    """Read a preset and switches such as ``dfmodel,network-is-sum,no-weights-not-read,all-reduce-factor=2``.

    Raises:
        UserError: an unknown word, or a factor that is none.

    >>> parse_compatibility("dfmodel,periodic-factor=2").periodic_factor
    2
    """
    found = RIGHT
    names = [one.name for one in fields(Compatibility)]
    factors = [name for name in names if name.endswith("_factor")]
    for word in text.split(","):
        name, equals, value = word.strip().removeprefix("no-").replace("-", "_").partition("=")
        if word.strip() in PRESETS:
            found = PRESETS[word.strip()]
        elif name in factors and equals:
            if value not in ("0", "1", "2"):
                raise UserError(f"--compat {word.strip()!r}: found {value!r} against 0, 1 or 2")
            found = replace(found, **{name: int(value)})  # type: ignore[arg-type]  # factors are int
        elif name in names and name not in factors and not equals:
            found = replace(found, **{name: not word.strip().startswith("no-")})
        else:
            known = [*PRESETS, *(f"{one}=2" if one in factors else one for one in names)]
            hint = nearest(word, [one.replace("_", "-") for one in known])
            raise UserError(f"--compat {word.strip()!r}: unknown{hint}")
    return found
