"""Programs and schedules under other hash seeds: processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.written_models import ModelWriter

ONES = ", ".join("1" for _ in range(54))
CONVOLUTION = f"""g (float[1,2,6,5] "in.put") => (float[1,3,4,3] y)
<float[3,2,3,3] "conv.weight" = {{{ONES}}}, float[3] tanh = {{1, 2, 3}}> {{
  [first] double = Conv<pads=[0,0,0,0], group=1, auto_pad="NOTSET">("in.put", "conv.weight", tanh)
  [second] t = LeakyRelu<alpha=0.1>(double)
  [third] y = Mul(t, t)
}}"""

_DUMP = """
import json, sys
from pathlib import Path
from dfcompile.frontend import read_model
program = read_model(Path(sys.argv[1])).program
assert "torch" not in sys.modules, "an .onnx file needs no torch"
json.dump([program.sdfg.to_json(), [str(n) for n in program.nodes], list(program.parameters)], sys.stdout)
"""

_DIGEST = """
import hashlib
from dfcompile.scheduler import ScheduleOptions, schedule, schedule_non_streaming
from tests.unit.scheduler.convolution import convolution_dag
digest = hashlib.sha256()
for partition in ("sb-rlx", "sb-lts", "work-ordered"):
    result = schedule(convolution_dag("mv", whole_arrays=False), ScheduleOptions(16, partition))
    for column in (result.block, result.pe, result.start, result.last_out, result.streamed, result.fifo_capacity):
        digest.update(column.tobytes())
baseline = schedule_non_streaming(convolution_dag("mv", whole_arrays=False), 16)
digest.update(baseline.pe.tobytes() + baseline.start.tobytes())
print(digest.hexdigest())
"""


def test_same_bytes_under_any_hash_seed_and_nothing_is_written(write_model: ModelWriter, tmp_path: Path) -> None:
    path = write_model(CONVOLUTION)
    folder = tmp_path / "empty"
    folder.mkdir()
    texts = []
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", _DUMP, str(path)],
            capture_output=True,
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        texts.append(run.stdout)

    assert texts[0] == texts[1]
    assert json.loads(texts[0])
    assert not list(folder.iterdir())


def test_schedules_do_not_depend_on_the_hash_seed() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }

    assert len(digests) == 1
