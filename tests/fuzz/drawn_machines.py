"""Machines of one chip, as system files: processing elements, SRAM and bandwidth from tight to ample."""

from dataclasses import dataclass, replace
from pathlib import Path

from tests.fuzz.draw import Draw

_PES = (1, 2, 3, 4, 6, 8, 12, 16, 32)
_SRAM = (8, 40, 200, 1000, 2730, 20_000)
_GB_PER_S = (0.5, 4.0, 10.0, 64.0, 300.0)


@dataclass(frozen=True, slots=True)
class DrawnMachine:
    """A chip.

    Attributes:
        pes: of it.
        sram_bytes: of all of it.
        gb_per_s: of its DRAM.
    """

    pes: int
    sram_bytes: int
    gb_per_s: float

    def file(self) -> Path:
        """Write the system file into the working folder; its price and power say nothing of times."""
        file = Path("machine.yaml")
        file.write_text(
            f"name: drawn\naccelerator: {{cores: {self.pes}, lanes_per_core: 1, stages_per_core: 1, "
            f"frequency_ghz: 1.0, sram_bytes: {self.sram_bytes}, price_usd_per_core: 1.0, power_w_per_core: 1.0}}\n"
            f"dram: {{bandwidth_gb_per_s: {self.gb_per_s}, capacity_bytes: 1000000000000, "
            "price_usd_per_gb_per_s: 1.0, power_w_per_gb_per_s: 1.0}\n"
        )
        return file

    def lesser(self, draw: Draw) -> dict[str, "DrawnMachine"]:
        """Return machines that have less of one thing, by what they have less of: of SRAM a byte at least."""
        found = {
            "SRAM": replace(self, sram_bytes=max(self.sram_bytes // draw.choice([2, 3, 16]), 1)),  # 0: without limit
            "bandwidth": replace(self, gb_per_s=self.gb_per_s / draw.choice([2, 3, 16])),
        }
        fewer = [pes for pes in _PES if pes < self.pes]
        return {"PEs": replace(self, pes=draw.choice(fewer)), **found} if fewer else found


def drawn_machine(draw: Draw) -> DrawnMachine:
    pes = draw.choice(_PES)
    return DrawnMachine(pes, max(pes * draw.choice(_SRAM) // draw.choice([1, 1, 16]), 4), draw.choice(_GB_PER_S))
