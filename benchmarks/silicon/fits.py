"""Fits the shipped calibrations anew, from tables of operators alone: ``python -m benchmarks.silicon.fits SYSTEMS``.

SYSTEMS is the folder ``aiconfigurator_core/systems`` of the unpacked wheel `aiconfigurator-core`; pyarrow reads it.
"""

import json
import sys
from pathlib import Path

from benchmarks.llm_fit import calibration
from benchmarks.silicon.operators import VERSIONS, operator_rows
from dfcompile.language_models.machines.finding import shipped_devices

SHIPPED = Path(__file__).parents[2] / "dfcompile" / "language_models" / "times" / "calibration.json"


def fitted(systems: Path, system: str, framework: str) -> dict[str, object]:
    """Return the calibration of a device under a framework."""
    device = shipped_devices()[system]
    rows = [row for row in operator_rows(systems, device, framework) if float(row["microseconds"]) > 0]
    source = (
        f"tables of operators of aiconfigurator-core 0.12.0 (Apache-2.0), {framework} {VERSIONS[system][framework]}"
    )
    return calibration(rows, 0.0, device.bytes_per_s, source)


def main(folder: str) -> int:
    """Write every calibration of a device and a framework beside those that are there."""
    found = json.loads(SHIPPED.read_text())
    for system, versions in VERSIONS.items():
        for framework in versions:
            found[f"{system.partition('-')[0]}-{framework}"] = fitted(Path(folder), system, framework)
    lines = ",\n".join(f"  {json.dumps(name)}: {_shown(one)}" for name, one in found.items())
    SHIPPED.write_text(f"{{\n{lines}\n}}\n")
    return 0


def _shown(one: dict[str, object]) -> str:
    lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in one.items())
    return f"{{\n{lines}\n  }}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
