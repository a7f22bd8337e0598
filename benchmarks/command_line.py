"""CPU seconds and peak memory of the command line, from `--help` to LeNet from PyTorch."""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.measurement import ROOT, measure, save

MODEL = ROOT / "examples" / "lenet" / "model.py"
PES = ("--pes", "16,128")


def main() -> int:
    """Measure, print, save; 1 if a limit is broken."""
    dfcompile = str(Path(sysconfig.get_path("scripts")) / "dfcompile")
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "lenet.onnx"
        # In a process of its own: a child begins with the peak memory of its parent.
        subprocess.run([sys.executable, "-m", "benchmarks.onnx_export", MODEL, exported], check=True)
        measurements = [
            measure("help", [dfcompile, "--help"], cpu_s_limit=0.3),
            measure("published", [dfcompile, str(exported), *PES, "--expand", "published"], cpu_s_limit=4.0),
            measure("chosen", [dfcompile, str(exported), *PES], cpu_s_limit=6.0),  # 2 s more at most
            measure("pytorch", [dfcompile, str(MODEL), *PES, "--expand", "published"], cpu_s_limit=9.0),
        ]
    for found in measurements:
        verdict = "ok" if found.is_within_limit else "OVER THE LIMIT"
        print(
            f"{found.name:<9} {found.cpu_s:6.2f} CPU s of {found.cpu_s_limit:.1f}, "
            f"{found.peak_memory_mb:6.0f} MB peak  {verdict}"
        )
    print(f"written to {save('command_line', measurements).relative_to(ROOT)}")
    return 0 if all(found.is_within_limit for found in measurements) else 1


if __name__ == "__main__":
    sys.exit(main())
