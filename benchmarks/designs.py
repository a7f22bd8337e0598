"""CPU seconds and peak memory of solving DFModel set-up files, right and as DFModel does, as given and all open."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import ROOT, save

DESIGNS = ROOT / "tests" / "data" / "dfmodel"
EXAMPLE = "readme_gpt3_1t_sn30"
EXAMPLE_LIMIT, LIMIT, LAYERS_LIMIT = 3.0, 60.0, 120.0
MODES = ("right", "dfmodel")
# The tool of the oldest age took tiles as given.
OLDEST_MODES = (*MODES, "dfmodel,no-tile-size-is-a-hint")
GIVEN, OPEN = "as given", "all open"
SHORT_S, RUNS = 2.0, 3  # what takes less is measured several times

LAYERS = 24
LAYERS_SIZES = (
    *("--hidden", "4096", "--seq", "2048", "--num-head", "32", "--head-dim", "128", "--word", "2"),
    *("--layers", str(LAYERS)),
)
# A machine for a graph of all layers, which is cut into stages.
LAYERS_MACHINE = """
system {
  num_chip: 16
  accelerator { core: 1040 systolic_width: 32 systolic_height: 6 sram_cap: 545259520.0 freq: 1.6 }
  memory { dram_bw: 1638.4 dram_cap: 1099511600000.0 }
  r_r { x: 0 y: 0 link_bw_x: 50.0 link_bw_y: 50.0 par_x: "TP" par_y: "PP" }
}
cost { link_unit_price: 2.0 switch_unit_price: 24.0 dram_unit_price: 1.0 accelerator_price: 33000.0 }
execution {
  llm {
    hidden_dim: 4096 head_dim: 128 num_head: 32 seq_len: 2048 num_layer: 24 global_batch_size: 64
    num_layer_in_graph: 24
  }
  execution_style: DATAFLOW num_config: 12 overlap: PERFECT_OVERLAP compute_util: 0.9 word: 2
}
"""


@dataclass(frozen=True, slots=True)
class DesignMeasurement:
    """One set-up file in one mode: median CPU seconds of its runs, and what the solver found."""

    name: str
    mode: str
    choices: str  # as given, or degrees, tiles and micro-batch size all left open
    outcome: str  # optimal, a gap, or why nothing is feasible
    time_s: float | None  # of a batch
    utilization: float | None
    points: int | None
    cpu_s: float
    cpu_s_limit: float
    cpu_s_runs: tuple[float, ...]
    peak_memory_mb: float

    @property
    def is_within_limit(self) -> bool:
        """Whether the median keeps the limit."""
        return self.cpu_s <= self.cpu_s_limit


def main() -> int:
    """Measure, print, save; 1 if a limit is broken or a run fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="set-up files whose name contains it")
    only = parser.parse_args().only
    dfcompile = str(Path(sysconfig.get_path("scripts")) / "dfcompile")
    measurements = []
    with tempfile.TemporaryDirectory() as folder:
        for name, choices, text, limit in _setups(dfcompile):
            if only not in name:
                continue
            setup = Path(folder) / f"{name}.txt"
            setup.write_text(text)
            for mode in OLDEST_MODES if "training {" in text else MODES:
                found = measure(dfcompile, setup, mode, choices, limit)
                measurements.append(found)
                verdict = "ok" if found.is_within_limit else "OVER THE LIMIT"
                print(
                    f"{name:<29} {mode.split(',')[0]:<7} {choices:<8} {found.cpu_s:7.2f} CPU s of {limit:3.0f}, "
                    f"{found.peak_memory_mb:5.0f} MB  {verdict:<5} {found.outcome}",
                    flush=True,
                )
    if not only:
        print(f"written to {save('designs', measurements).relative_to(ROOT)}")
    return 0 if all(found.is_within_limit for found in measurements) else 1


def _setups(dfcompile: str) -> Iterator[tuple[str, str, str, float]]:
    """Yield name, what is open, text and limit of each set-up file."""
    for setup in sorted(DESIGNS.glob("**/*.txt"), key=lambda path: path.stem):
        text = setup.read_text()
        yield setup.stem, GIVEN, text, EXAMPLE_LIMIT if setup.stem == EXAMPLE else LIMIT
        opened = open_choices(text)
        if opened != text and "training {" not in text:
            yield setup.stem, OPEN, opened, LIMIT
    graph = subprocess.run(
        [dfcompile, "generate", "llm-multilayer", *LAYERS_SIZES],
        capture_output=True,
        text=True,
        check=True,
    )
    yield f"llm_{LAYERS}_layers_16_chips", OPEN, graph.stdout + LAYERS_MACHINE, LAYERS_LIMIT


def open_choices(text: str) -> str:
    """Leave degrees, tile and micro-batch size of a language model open."""
    if not re.search(r"\bllm\b", text):
        return text
    text = re.sub(r"\b(tile_size|micro_batch_size): *\d+", "", text)
    return re.sub(r"(?m)^(\s*)([wxyz]): *\d+\s*$", r"\1\2: 0", text)


def measure(dfcompile: str, setup: Path, mode: str, choices: str, limit: float) -> DesignMeasurement:
    """Solve a set-up file until the median of its CPU seconds is worth something; infeasible is an outcome.

    Raises:
        RuntimeError: a run fails otherwise.
    """
    command = [dfcompile, str(setup), "--compat", mode, "--format", "json"]
    status, output, error, first_s, peak_kb = _run(command)
    if status not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: exit status {status}: {error.strip()}")
    seconds, peaks = [first_s], [peak_kb]
    while len(seconds) < (RUNS if first_s < SHORT_S else 1):
        _, _, _, cpu_s, kb = _run(command)
        seconds.append(cpu_s)
        peaks.append(kb)
    report = json.loads(output) if status == 0 else {"figures": {}, "search": {}}
    search, figures = report["search"], report["figures"]
    outcome = f"infeasible: {error.strip().removeprefix('dfcompile: error: ')}"
    if status == 0:
        outcome = "optimal" if search["optimal"] else f"gap {100 * search['gap']:.2g} %"
    return DesignMeasurement(
        name=setup.stem,
        mode=mode,
        choices=choices,
        outcome=outcome,
        time_s=figures.get("time_s"),
        utilization=figures.get("utilization"),
        points=search.get("points"),
        cpu_s=round(statistics.median(seconds), 3),
        cpu_s_limit=limit,
        cpu_s_runs=tuple(round(one, 3) for one in seconds),
        peak_memory_mb=round(max(peaks) / 1000, 1),
    )


def _run(command: Sequence[str]) -> tuple[int, str, str, float, int]:
    """Return exit status, output, error, CPU seconds and peak memory in kB."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as error:
        with subprocess.Popen(command, stdout=output, stderr=error) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        error.seek(0)
        cpu_s = usage.ru_utime + usage.ru_stime
        return process.returncode, output.read(), error.read(), cpu_s, usage.ru_maxrss


if __name__ == "__main__":
    sys.exit(main())
