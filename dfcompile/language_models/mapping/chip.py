"""A device of a language model as a system of the back end, which has arrays of lanes and stages and one rate."""

import math
from collections.abc import Sequence

from dfcompile.dfmodel_backend import Amount, Assumption, System, load_system
from dfcompile.dfmodel_backend.machine.machine import Dimension, Network
from dfcompile.dfmodel_backend.machine.system import Accelerator, Dram
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.machines.finding import is_device

_HERE = "dfcompile llm --map"


def find_system(asked: str, device: Device, forms: Sequence[str]) -> System:
    """Return the system of a name or file: its own, or made of a spreadsheet's device.

    Args:
        asked: as `find_device`.
        device: that was found.
        forms: number formats of products; the slowest of them gives the rate.

    Raises:
        UserError: the device has no rate of a format, or its chips lie in a network that is not known.
    """
    if not is_device(asked):
        return load_system(asked)
    return system_of(device, forms)


def system_of(device: Device, forms: Sequence[str]) -> System:
    """Return the system of a device.

    Where it does not say of which arrays its cores are, they have a power of two of multiply-adders, as near as
    possible to what the rate asks for, and the frequency is such that the rate is met.
    """
    form = min(dict.fromkeys(forms), key=device.rate)
    kinds = "_".join(link.kind for link in device.links) or "none"
    dimensions = tuple(Dimension(link.chips, link.bytes_per_s * 1e-9, 0.0) for link in device.links)
    rate = device.rate(form)
    rows, _, columns = device.granule
    per_core = rate / device.cores / (device.frequency_hz or 1e9)
    if rows * columns == 1:
        bits = max(0, round(math.log2(per_core)))
        rows, columns = 1 << bits // 2, 1 << (bits - bits // 2)
    frequency = rate / (device.cores * rows * columns)
    held = device.cache_bytes * device.instances(device.levels[0]) if device.levels else 0
    return System(
        name=device.name,
        chips=device.chips,
        accelerator=Accelerator(
            device.cores, rows, columns, frequency * 1e-9, Amount(held), Amount(device.usd), Amount(device.tdp_w)
        ),
        dram=Dram(Amount(device.bytes_per_s * 1e-9), Amount(device.capacity_bytes), 0.0, 0.0),
        network=Network(kinds, dimensions, 0.0, 0.0, 0.0, device.link_latency_s * 1e9),
        sources=(
            Assumption("arrays", f"{rows} x {columns} per core at {frequency * 1e-9:.4g} GHz", _HERE),
            Assumption("rate", f"of {form}, the slowest of its formats", _HERE),
        ),
    )
