"""Every model from every source: ``python -m benchmarks.model_rows [MODEL …] [--sources …]``, or ``make models``.

Each row is a model file read as it is, or exported to ONNX in one of the forms of `benchmarks.onnx_export`: its nodes,
the tasks and makespans of `--expand auto`, the deviation of the compiled lowering from the original, CPU seconds and
peak memory. Rows go to
``benchmarks/models.json``, where those of earlier runs stay until they are measured again; the table of
``docs/models.md`` is written from that file.

Some models need `transformers`, which is no requirement of the project: install it into a folder of its own
(`pip install --target FOLDER transformers`) and give that folder in ``PYTHONPATH``. Weights are random.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measurement import ROOT, head
from benchmarks.models_page import write_page
from benchmarks.onnx_export import ELEMENT_TYPES, QUANTISED

FOLDER = ROOT / "benchmarks" / "models"
FILES = {path.stem: path for path in FOLDER.glob("*.py")} | {"lenet": ROOT / "examples" / "lenet" / "model.py"}
ROWS = ROOT / "benchmarks" / "models.json"
SOURCES = ("py", "dynamo-18", "dynamo-20", "dynamo-23", "legacy-11", "legacy-17")
FORMS = (*SOURCES, *ELEMENT_TYPES, *QUANTISED)
PES = (64, 512, 2048)


@dataclass(frozen=True, slots=True)
class Row:
    """What one model from one source gives.

    Attributes:
        model: name of its file.
        source: ``py``, or a form of `benchmarks.onnx_export`.
        problem: why there are no figures: what PyTorch's exporter, a quantiser or the command says; empty if there are.
        nodes: of the model.
        nodes_costed: of them, those that are tasks, views or folded.
        tasks: of the canonical DAG on the fewest processing elements.
        makespans: in cycles, per number of processing elements.
        max_rel_error: of the compiled lowering, as a part of the largest value of an output.
        effect_of_inputs: by which part of the largest value outputs change with the order of what inputs hold.
        cpu_s: user and system time of the command for all numbers of processing elements, without verification.
        peak_mb: most memory of that command.
        commit: that was measured.
        verified: commit of the deviation: an earlier one if the figures on the fewest elements are the same since.
    """

    model: str
    source: str
    problem: str = ""
    nodes: int = 0
    nodes_costed: int = 0
    tasks: int = 0
    makespans: tuple[int, ...] = ()
    max_rel_error: float | None = None
    effect_of_inputs: float | None = None
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    commit: str = ""
    verified: str = ""


def main(words: Sequence[str]) -> int:
    """Measure rows, save each as soon as it is there, write the page; 1 if the command refused a model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_rows")
    parser.add_argument("models", nargs="*", help="names of files of benchmarks/models; all of them by default")
    parser.add_argument("--sources", nargs="+", choices=FORMS, default=list(SOURCES))
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--unchanged", action="store_true", help="no comparison anew of figures that are as before")
    parser.add_argument("--exports", type=Path, help="folder in which exported files stay, and are looked for")
    chosen = parser.parse_args(words)
    names = chosen.models or sorted(FILES)
    for name in names:
        if name not in FILES:
            parser.error(f"model {name!r}: unknown (known: {', '.join(sorted(FILES))})")
    refused = False
    for name in names:
        for source in chosen.sources:
            earlier = _saved().get((name, source)) if chosen.unchanged else None
            row = measured(name, source, verify=not chosen.no_verify, exports=chosen.exports, earlier=earlier)
            refused |= bool(row.problem) and not row.problem.startswith(("PyTorch", "onnxruntime"))
            print(_text(row), flush=True)
            _save(row)
    write_page(json.loads(ROWS.read_text()))
    return 1 if refused else 0


def measured(name: str, source: str, *, verify: bool, exports: Path | None = None, earlier: Row | None = None) -> Row:
    """Return the row of one model from one source.

    Args:
        name: of its file.
        source: ``py``, or a form of `benchmarks.onnx_export`.
        verify: whether to compile its lowering and compare.
        exports: folder with files that were exported before, ``model.source.onnx``, and in which this one stays.
        earlier: a row whose comparison counts if nodes, tasks and makespan on the fewest elements are the same.
    """
    model = FILES[name]
    if source == "py":
        return _figures(name, source, model, verify, earlier)
    with tempfile.TemporaryDirectory() as folder:
        exported = (exports or Path(folder)) / f"{name}.{source}.onnx"
        if not exported.exists():
            # In a process of its own: a child begins with the peak memory of its parent.
            export = [sys.executable, "-m", "benchmarks.onnx_export", str(model), str(exported), source]
            done = subprocess.run(export, capture_output=True, text=True, check=False)
            if done.returncode:
                exported.unlink(missing_ok=True)
                writer = "onnxruntime" if source in QUANTISED else "PyTorch"
                return Row(name, source, f"{writer}: {_last_line(done.stderr)}", commit=head())
        return _figures(name, source, exported, verify, earlier)


def _figures(name: str, source: str, model: Path, verify: bool, earlier: Row | None) -> Row:  # noqa: FBT001
    counts = ",".join(map(str, PES))
    run = _run(model, "--pes", counts)
    if run.problem:
        return Row(name, source, run.problem, commit=head())
    report = json.loads(run.text)
    problem, error, effect, verified = "", None, None, ""
    best = [min(r["schedule"]["makespan_cycles"] for r in report["results"] if r["pes"] == pes) for pes in PES]
    nodes, tasks = report["model"]["nodes"], report["results"][0]["schedule"]["tasks"]
    if verify and earlier is not None and (nodes, tasks, best[:1]) == _verified(earlier):
        error, effect, verified = earlier.max_rel_error, earlier.effect_of_inputs, earlier.verified or earlier.commit
    elif verify:
        checked = _run(model, "--pes", str(PES[0]), "--verify")
        problem = checked.problem
        if not problem:
            verification = json.loads(checked.text)["results"][0]["verification"]
            error, effect, verified = verification["max_rel_error"], verification["effect_of_inputs"], head()
    return Row(
        name,
        source,
        problem,
        nodes,
        report["model"]["nodes_costed"],
        tasks,
        tuple(best),
        error,
        effect,
        round(run.cpu_s, 1),
        round(run.peak_mb),
        head(),
        verified,
    )


def _verified(row: Row) -> tuple[object, ...]:
    """Return what tells whether a row was compared, of which lowering."""
    if row.max_rel_error is None or row.effect_of_inputs is None:
        return ()
    return row.nodes, row.tasks, [*row.makespans[:1]]


@dataclass(frozen=True, slots=True)
class _Run:
    text: str  # what it printed
    problem: str
    cpu_s: float
    peak_mb: float


def _run(model: Path, *options: str) -> _Run:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "dfcompile", str(model), *options, "--expand", "auto", "--format", "json"]
        with subprocess.Popen(command, stdout=output, stderr=errors) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        problem = f"exit {process.returncode}: {_last_line(errors.read())}" if process.returncode else ""
        return _Run(output.read(), problem, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def _saved() -> dict[tuple[str, str], Row]:
    known = json.loads(ROWS.read_text()) if ROWS.exists() else []
    return {(one["model"], one["source"]): Row(**one) for one in known}


def _save(row: Row) -> None:
    rows = (_saved() | {(row.model, row.source): row}).values()
    ordered = sorted(rows, key=lambda one: (one.model, FORMS.index(one.source)))
    ROWS.write_text(json.dumps([asdict(one) for one in ordered], indent=1) + "\n")


def _text(row: Row) -> str:
    if row.problem:
        return f"{row.model:<22} {row.source:<10} {row.problem}"
    error = "not verified" if row.max_rel_error is None else f"error {row.max_rel_error:.1e}"
    spans = " ".join(f"{cycles:,}" for cycles in row.makespans)
    return f"{row.model:<22} {row.source:<10} {row.tasks:>9,} tasks  {spans}  {error}  {row.cpu_s} s {row.peak_mb} MB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
