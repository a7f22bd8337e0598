"""Published latencies of language models beside ours: ``python -m benchmarks.llm_validation``.

None of these rows was fitted on. gpt-fast does not say at which context it decodes; 256 tokens are assumed.
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case, Deployments
from dfcompile.language_models.steps.batch import decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.times.calibrated import Calibration, find_calibration
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

MEASURED = Path(__file__).parent.parent / "tests" / "data" / "llm" / "e2e_validation.csv"
CONTEXT = 256
# Model, chips that share its tensors, prompt (0: a decode), context of a decode, format of weights; as in the file.
CASES = (
    ("llama-2-7b", 1, 128, 0, "bf16"),
    ("llama-2-7b", 1, 2048, 0, "bf16"),
    ("llama-2-70b", 4, 128, 0, "bf16"),
    ("llama-2-70b", 4, 2048, 0, "bf16"),
    ("llama-2-7b", 1, 0, CONTEXT, "bf16"),
    ("llama-2-7b", 2, 0, CONTEXT, "bf16"),
    ("llama-2-7b", 4, 0, CONTEXT, "bf16"),
    ("llama-2-7b", 8, 0, CONTEXT, "bf16"),
    ("llama-2-70b", 2, 0, CONTEXT, "bf16"),
    ("llama-2-70b", 4, 0, CONTEXT, "bf16"),
    ("llama-2-70b", 8, 0, CONTEXT, "bf16"),
    ("llama-2-7b", 1, 0, CONTEXT, "int8"),
    ("llama-2-70b", 1, 0, CONTEXT, "int8"),
    ("llama-2-13b", 1, 512, 0, "bf16"),
    ("llama-2-13b", 1, 0, 512, "bf16"),
    ("llama-2-13b", 2, 512, 0, "bf16"),
    ("llama-2-13b", 2, 0, 512, "bf16"),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measured latency in ms, and what is predicted."""

    case: str
    measured_ms: float
    roofline_ms: float
    calibrated_ms: float

    @property
    def errors(self) -> tuple[float, float]:
        """Relative errors of roofline and calibrated time."""
        return self.roofline_ms / self.measured_ms - 1, self.calibrated_ms / self.measured_ms - 1


def comparisons() -> list[Comparison]:
    """Predict every published latency."""
    calibration = find_calibration("a100")
    rows = list(csv.DictReader(MEASURED.read_text().splitlines()))
    return [
        Comparison(row["case"], float(row["measured_ms"]), *_predicted(row["case"], one, calibration))
        for row, one in zip(rows, CASES, strict=True)
    ]


def _predicted(name: str, one: tuple[str, int, int, int, str], calibration: Calibration) -> tuple[float, float]:
    model, chips, prompt, context, weights = one
    device = shipped_devices()["a100-sxm-40" if "A100-40" in name else "a100-sxm"]
    precision = uniform(FORMATS["bf16"])
    if weights != "bf16":
        precision = with_dtypes(precision, f"attention={weights},mlp={weights},head={weights}")
    case = Case(
        read_model(model),
        prefill_batch(str(prompt)) if prompt else decode_batch(str(context)),
        replace(device, capacity_bytes=0),  # they ran, whatever they held
        precision,
        StepChoices(),
        roofline,
    )
    degrees = Degrees(tensor=chips)
    alone = Deployments(case, chips).deployed(degrees)
    fitted = replace(case, timer=calibration.seconds, fitted=calibration.all_reduce)
    return alone.compute_s * 1e3, Deployments(fitted, chips).deployed(degrees).exec_s * 1e3


def mean_errors(found: list[Comparison]) -> tuple[float, float]:
    """Return the mean absolute relative errors of roofline and calibrated times."""
    count = len(found)
    return (
        sum(abs(one.errors[0]) for one in found) / count,
        sum(abs(one.errors[1]) for one in found) / count,
    )


def main() -> int:
    """Print every row and the means."""
    found = comparisons()
    print(f"{'':53}measured  roofline    error  calibrated    error")
    for one in found:
        alone, fitted = one.errors
        print(
            f"{one.case:53}{one.measured_ms:8.3f}{one.roofline_ms:10.3f}{100 * alone:8.1f}%{one.calibrated_ms:12.3f}"
            f"{100 * fitted:8.1f}%"
        )
    alone, fitted = mean_errors(found)
    print(f"mean absolute error: roofline {100 * alone:.1f} %, calibrated {100 * fitted:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
