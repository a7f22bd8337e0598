"""The machine that is asked for: from a file or, where nothing is said, the canonical one."""

from pathlib import Path

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Accelerator, Amount, Dram, System

_ELEMENT = "canonical DAG: a processing element handles one element per cycle [dematteis23]"
_PER_CORE = " / 245,760 multiply-adders"
_DRAM = "sn30 with DDR: DRAM of one chip, whatever its number of processing elements [ko24]"
# What systems/canonical.yaml says, as a test compares. Most runs ask for nothing else, and importing what reads and
# checks a file takes a tenth of a second.
CANONICAL = System(
    name="canonical",
    chips=1,
    accelerator=Accelerator(
        cores=128,
        lanes_per_core=1,
        stages_per_core=1,
        frequency_ghz=1.0,
        sram=Amount(2730.6666666666665, per_core=True),
        price=Amount(0.06722920829264324, per_core=True),
        power=Amount(0.001809514141845703, per_core=True),
    ),
    dram=Dram(
        bandwidth=Amount(300.0),
        capacity=Amount(1099511600000.0),
        price_usd_per_gb_per_s=1.0,
        power_w_per_gb_per_s=0.16248,
    ),
    network=ONE_CHIP,
    sources=(
        Assumption("accelerator.lanes_per_core", "1", _ELEMENT),
        Assumption("accelerator.stages_per_core", "1", _ELEMENT),
        Assumption("accelerator.frequency_ghz", "1.0", "chosen: one cycle is one nanosecond"),
        Assumption("accelerator.sram_bytes_per_core", "2730.6666666666665", f"sn30: 671,088,640 bytes{_PER_CORE}"),
        Assumption("accelerator.price_usd_per_core", "0.06722920829264324", f"sn30: 16,522.25023 ${_PER_CORE} [ko24]"),
        Assumption("accelerator.power_w_per_core", "0.001809514141845703", f"sn30: 444.7061955 W{_PER_CORE} [ko24]"),
        Assumption("dram.bandwidth_gb_per_s", "300.0", _DRAM),
        Assumption("dram.capacity_bytes", "1099511600000", _DRAM),
        Assumption("dram.price_usd_per_gb_per_s", "1.0", _DRAM),
        Assumption("dram.power_w_per_gb_per_s", "0.16248", _DRAM),
    ),
)


def load_system(system: str | Path | None = None) -> System:
    """Return the machine of a file, or of a name; of nothing the canonical machine.

    Raises:
        UserError: as `dfcompile.dfmodel_backend.machine.system_file.read_system`.
    """
    if system is None:
        return CANONICAL
    from dfcompile.dfmodel_backend.machine.system_file import read_system

    return read_system(str(system))
