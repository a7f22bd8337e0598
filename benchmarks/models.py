"""CPU seconds and peak memory of whole models on one number of processing elements.

BERT and GPT-2 need `transformers`, which is no requirement of the project: install it into a folder of its own
(`pip install --target FOLDER transformers`) and give that folder in ``PYTHONPATH``. Weights are random.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import ROOT, save

FOLDER = ROOT / "benchmarks" / "models"
PES = 128
MOST_WEIGHTS = 2.0  # times the weights
ROOM_MB = 600  # beside them
CPU_S = {
    "resnet_18.onnx": 5.0, "resnet_50.onnx": 10.0, "mobilenet_v2.onnx": 10.0, "mobilenet_v2.py": 12.0,
    "vit_b_16.onnx": 20.0, "gpt2.onnx": 18.0, "bert_base.onnx": 18.0, "decoder_layer.onnx": 3.0,
}  # fmt: skip
OTHERS_CPU_S = 25.0


@dataclass(frozen=True, slots=True)
class Found:
    """One run of the command on a model."""

    model: str
    nodes: int
    tasks: int
    weights_mb: float
    cpu_s: float  # user and system time, children included
    cpu_s_limit: float
    peak_memory_mb: float
    peak_memory_mb_limit: float
    makespan_cycles: int
    mapping_us: float
    gap: float

    @property
    def is_within_limits(self) -> bool:
        """Whether time and memory keep their limits."""
        return self.cpu_s <= self.cpu_s_limit and self.peak_memory_mb <= self.peak_memory_mb_limit


def main(files: list[str]) -> int:
    """Measure given model files, or those of the folder, print a table, save; 1 if a limit is broken."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for model in map(Path, files or map(str, sorted(FOLDER.glob("*.py")))):
            exported = model
            if model.suffix == ".py":
                exported = Path(folder) / f"{model.stem}.onnx"
                # In a process of its own: a child begins with the peak memory of its parent.
                subprocess.run([sys.executable, "-m", "benchmarks.onnx_export", model, exported], check=True)
            weights_mb = _weights_mb(exported)
            for path in dict.fromkeys((model, exported)):
                found.append(_run(path, weights_mb))
                print(_row(found[-1]), flush=True)
            if exported is not model:
                exported.unlink()
    print(f"written to {save('models', found, {'pes': PES}).relative_to(ROOT)}")
    return 0 if all(one.is_within_limits for one in found) else 1


def _weights_mb(path: Path) -> float:
    code = f"import onnx; print(sum(one.ByteSize() for one in onnx.load({str(path)!r}).graph.initializer))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1e6


def _run(path: Path, weights_mb: float) -> Found:
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-m", "dfcompile", str(path), "--pes", str(PES), "--format", "json"]
        with subprocess.Popen(command, stdout=output) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
        output.seek(0)
        report = json.load(output)
    (result,) = report["results"]
    mapping = result["mapping"]
    return Found(
        model=path.name,
        nodes=report["model"]["nodes"],
        tasks=result["schedule"]["tasks"],
        weights_mb=round(weights_mb, 1),
        cpu_s=round(usage.ru_utime + usage.ru_stime, 2),
        cpu_s_limit=CPU_S.get(path.name, OTHERS_CPU_S),
        peak_memory_mb=round(usage.ru_maxrss / 1000, 1),
        peak_memory_mb_limit=round(MOST_WEIGHTS * weights_mb + ROOM_MB, 1),
        makespan_cycles=result["schedule"]["makespan_cycles"],
        mapping_us=mapping["time_s"] * 1e6,
        gap=mapping["gap"],
    )


def _row(one: Found) -> str:
    verdict = "ok" if one.is_within_limits else "OVER A LIMIT"
    return (
        f"{one.model:<22} {one.tasks:>9,} tasks {one.weights_mb:7.1f} MB of weights "
        f"{one.cpu_s:6.2f} CPU s of {one.cpu_s_limit:.0f}, {one.peak_memory_mb:6.0f} MB of "
        f"{one.peak_memory_mb_limit:.0f}  gap {one.gap:.1%}  {verdict}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
