"""The five figures that the notebook reads of a machine."""

from dfcompile.errors import UserError
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.notebook.tiler import NotebookMachine


def notebook_machine(device: Device) -> NotebookMachine:
    """Return the notebook's figures of a device; its one rate is the first that the device has.

    Raises:
        UserError: its rate is no whole number per cycle and core, or a memory on the chip is missing.
    """
    rate = next(iter(device.macs_per_s.values()))
    per_cycle = rate / (device.cores * device.frequency_hz) if device.frequency_hz else 0.0
    if not per_cycle or per_cycle != int(per_cycle):
        raise UserError(
            f"system {device.name!r}: found {per_cycle:g} MACs per cycle and core against a whole number, which "
            "--compat notebook needs (NVL-AX and JGS are its machines)"
        )
    if not device.cache_bytes:
        raise UserError(f"system {device.name!r}: found no memory on the chip, which --compat notebook needs")
    return NotebookMachine(
        device.name, device.cores, device.frequency_hz, int(per_cycle), device.bytes_per_s, device.cache_bytes
    )
