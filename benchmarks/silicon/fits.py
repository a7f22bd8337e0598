"""Fits the shipped calibrations anew, from tables of operators alone: ``python -m benchmarks.silicon.fits SYSTEMS``.

With ``--left-out`` it prints how far served rows of a model are off if its shapes were not fitted on, and writes
nothing.
SYSTEMS is the folder ``aiconfigurator_core/systems`` of the unpacked wheel `aiconfigurator-core`; pyarrow reads it.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.llm_fit import calibration
from benchmarks.silicon.operators import VERSIONS, operator_rows
from benchmarks.silicon.serving import compared, mean, rows
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.model import Model

SHIPPED = Path(__file__).parents[2] / "dfcompile" / "language_models" / "times" / "calibration.json"


def fitted(systems: Path, system: str, framework: str, without: Model | None = None) -> dict[str, object]:
    """Return the calibration of a device under a framework, maybe without the shapes of a model."""
    device = shipped_devices()[system]
    measured = [row for row in operator_rows(systems, device, framework, without) if float(row["microseconds"]) > 0]
    source = (
        f"tables of operators of aiconfigurator-core 0.12.0 (Apache-2.0), {framework} {VERSIONS[system][framework]}"
    )
    return calibration(measured, 0.0, device.bytes_per_s, source)


def left_out(systems: Path) -> int:
    """Print the error of every model's rows under calibrations that were fitted without its shapes."""
    stated = [row for row in rows() if not row.is_capped]
    print("| model left out | rows | without its shapes, % | with them, % |\n|---|---:|---:|---:|")
    for model in sorted({row.model for row in stated}):
        errors: list[float] = []
        usual: list[float] = []
        own = [row for row in stated if row.model == model]
        for system, framework in sorted({(row.system, row.framework) for row in own}):
            with TemporaryDirectory() as folder:
                file = Path(folder) / "fitted.json"
                file.write_text(json.dumps(fitted(systems, system, framework, read_model(model))))
                here = [row for row in own if (row.system, row.framework) == (system, framework)]
                errors += [compared(row, calibration=str(file)).error for row in here]
                usual += [compared(row).error for row in here]
        print(f"| {model} | {len(own)} | {mean(errors):.1f} | {mean(usual):.1f} |", flush=True)
    return 0


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
    sys.exit(left_out(Path(sys.argv[1])) if "--left-out" in sys.argv else main(sys.argv[1]))
