"""Programs and schedules under other hash seeds: processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.locations import ROOT
from tests.written_models import ModelWriter

ONES = ", ".join("1" for _ in range(54))
CONVOLUTION = f"""g (float[1,2,6,5] "in.put") => (float[1,3,4,3] y)
<float[3,2,3,3] "conv.weight" = {{{ONES}}}, float[3] tanh = {{1, 2, 3}}> {{
  [first] double = Conv<pads=[0,0,0,0], group=1, auto_pad="NOTSET">("in.put", "conv.weight", tanh)
  [second] t = LeakyRelu<alpha=0.1>(double)
  [third] y = Mul(t, t)
}}"""

# Reads the model, schedules, and compiles the model.
_RUN = """
import hashlib, json, sys
from pathlib import Path
from dfcompile.cli.main import main
from dfcompile.frontend import read_model
from dfcompile.scheduler import ScheduleOptions, schedule, schedule_non_streaming
from tests.unit.scheduler.convolution import convolution_dag

program = read_model(Path(sys.argv[1])).program
assert "torch" not in sys.modules, "an .onnx file needs no torch"
digest = hashlib.sha256()
for partition in ("sb-rlx", "sb-lts", "work-ordered"):
    result = schedule(convolution_dag("mv", whole_arrays=False), ScheduleOptions(16, partition))
    for column in (result.block, result.pe, result.start, result.last_out, result.streamed, result.fifo_capacity):
        digest.update(column.tobytes())
baseline = schedule_non_streaming(convolution_dag("mv", whole_arrays=False), 16)
digest.update(baseline.pe.tobytes() + baseline.start.tobytes())
print(json.dumps([program.sdfg.to_json(), [str(n) for n in program.nodes], list(program.parameters)]))
print(digest.hexdigest())
sys.exit(main([sys.argv[1], "--pes", "16,128", "--expand", "MatMul=mv,lmv", "--format", "json"]))
"""


def test_same_bytes_under_any_hash_seed_and_nothing_is_written(write_model: ModelWriter, tmp_path: Path) -> None:
    path = write_model(CONVOLUTION)
    folder = tmp_path / "empty"
    folder.mkdir()
    printed = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _RUN, str(path)],
            capture_output=True,
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            text=True,
        )
        printed.append([line for line in done.stdout.splitlines() if '"solver_s"' not in line])

    assert printed[0] == printed[1]
    assert json.loads(printed[0][0])
    assert len(printed[0]) > 100  # of the report
    assert not list(folder.iterdir())
