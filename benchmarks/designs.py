"""CPU seconds of solving DFModel set-up files: the published ones as they are, and with all choices left open."""

import re
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.measurement import ROOT, Measurement, measure, save

DESIGNS = ROOT / "tests" / "data" / "dfmodel"
EXAMPLE = "readme_gpt3_1t_sn30"
EXAMPLE_LIMIT, LIMIT = 3.0, 60.0


def main() -> int:
    """Measure, print, save; 1 if a limit is broken."""
    dfcompile = str(Path(sysconfig.get_path("scripts")) / "dfcompile")
    measurements: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder:
        for setup in sorted(DESIGNS.glob("*.txt")):
            limit = EXAMPLE_LIMIT if setup.stem == EXAMPLE else LIMIT
            words = ["--compat", "dfmodel"]
            measurements.append(measure(setup.stem, [dfcompile, str(setup), *words], limit))
            text = setup.read_text()
            opened = open_choices(text)
            if opened != text:
                free = Path(folder) / f"{setup.stem}.txt"
                free.write_text(opened)
                measurements.append(measure(f"{setup.stem} free", [dfcompile, str(free), *words], LIMIT))
    for found in measurements:
        verdict = "ok" if found.is_within_limit else "OVER THE LIMIT"
        print(f"{found.name:<36} {found.cpu_s:6.2f} CPU s of {found.cpu_s_limit:.0f}  {verdict}")
    print(f"written to {save('designs', measurements).relative_to(ROOT)}")
    return 0 if all(found.is_within_limit for found in measurements) else 1


def open_choices(text: str) -> str:
    """Leave degrees, tile and micro-batch size of a language model open."""
    if not re.search(r"\bllm\b", text):
        return text
    text = re.sub(r"\b(tile_size|micro_batch_size): *\d+", "", text)
    return re.sub(r"(?m)^(\s*)([wxyz]): *\d+\s*$", r"\1\2: 0", text)


if __name__ == "__main__":
    sys.exit(main())
