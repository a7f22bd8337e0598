"""Findings, written to a folder: one sub-folder for each cause, with the first file that shows it and a note."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.fuzz.ancestors import only_output
from tests.fuzz.campaign import Judged
from tests.fuzz.draw import Draw
from tests.fuzz.kinds import KINDS
from tests.fuzz.outcome import Verdict

_OUTPUT = re.compile("output '([^']*)':")
MOST_SHOWN = 4  # further seeds of a cause


def write_findings(folder: Path, judged: Sequence[Judged], max_causes: int = 200) -> tuple[Path, ...]:
    """Write what must be mended, most frequent cause first; what an earlier run left there is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    causes: defaultdict[tuple[str, str], list[Judged]] = defaultdict(list)
    for each in judged:
        if each.outcome.verdict.is_finding:
            causes[each.outcome.verdict.name, each.outcome.cause].append(each)
    written = []
    for number, (key, cases) in enumerate(sorted(causes.items(), key=lambda item: -len(item[1]))[:max_causes]):
        target = folder / f"{number:03}-{key[0].lower().replace('_', '-')}"
        target.mkdir(parents=True)
        _write(target, cases)
        written.append(target)
    return tuple(written)


def _write(target: Path, cases: Sequence[Judged]) -> None:
    smallest, case = min(
        ((each, KINDS[each.kind].draw(Draw(each.seed))) for each in cases[:20]), key=lambda pair: len(pair[1].content)
    )
    (target / f"case{case.suffix}").write_bytes(case.content)
    if smallest.outcome.verdict is Verdict.DIFFERENT and (output := _OUTPUT.match(smallest.outcome.detail)):
        (target / "reduced.onnx").write_bytes(only_output(case.content, output[1]))
    for name, value in case.feeds.items():
        np.save(target / f"{''.join(char if char.isalnum() else '_' for char in name)[:40]}.npy", value)
    others = [f"{each.kind} {each.seed}" for each in cases[:MOST_SHOWN]]
    (target / "note.txt").write_text(
        f"{smallest.outcome.verdict.value}\ncause: {smallest.outcome.cause}\n{smallest.outcome.detail}\n\n"
        f"{len(cases)} cases; make it again: python -m tests.fuzz --case {smallest.kind} {json.dumps(smallest.seed)}\n"
        f"others: {json.dumps(others)}\n",
        encoding="utf-8", errors="backslashreplace",
    )  # fmt: skip
