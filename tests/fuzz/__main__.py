"""``python -m tests.fuzz``: a campaign, what came of it, and the findings in build/fuzz."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.campaign import ROOT, Judged, run_campaign
from tests.fuzz.findings import write_findings
from tests.fuzz.outcome import Verdict
from tests.fuzz.plan import planned

FOLDER = ROOT / "build" / "fuzz"
MOST_REASONS = 40
UNDAMAGED = frozenset(["node", "graph", "folded", "empty", "fixed", "function", "compiled"])


def main() -> int:
    """Run a campaign; return 1 if it found something."""
    options = _options()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    cases = planned(seed, options.count, options.dags, options.files, options.configurations)
    if options.only:
        cases = [case for case in cases if case[0] in options.only]
    if options.case:
        cases = [tuple(options.case)]
    print(f"seed {seed}: {len(cases)} cases (again: python -m tests.fuzz --seed {seed})", flush=True)
    begin = time.monotonic()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="dfcompile-fuzz-", suffix=".log") as log:
        judged = run_campaign(cases, options.workers, Path(log.name), _Progress(len(cases)))
    text = _report(judged, time.monotonic() - begin)
    print(text)
    folders = write_findings(FOLDER / "findings", judged)
    (FOLDER / "report.txt").write_text(f"seed {seed}\n{text}\n", encoding="utf-8", errors="backslashreplace")
    for folder in folders:
        print(folder)
        if options.case:
            print((folder / "note.txt").read_text(encoding="utf-8"))
    return 1 if folders else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="of an earlier run; by default a new one")
    parser.add_argument("--count", type=int, default=20_000, help="models")
    parser.add_argument("--dags", type=int, default=5_000, help="canonical DAG files")
    parser.add_argument("--files", type=int, default=5_000, help="set-up and system files")
    parser.add_argument("--configurations", type=int, default=3_000, help="quantised language models")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--only", nargs="+", help="kinds of cases")
    parser.add_argument("--case", nargs=2, metavar=("KIND", "SEED"), help="one case, as a note tells it")
    return parser.parse_args()


class _Progress:
    """Prints each finding of a new cause at once, and now and then how far it is."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._begin = time.monotonic()
        self._causes: set[str] = set()

    def __call__(self, judged: Judged) -> None:
        self._done += 1
        outcome = judged.outcome
        if outcome.verdict.is_finding and outcome.cause not in self._causes:
            self._causes.add(outcome.cause)
            print(f"{outcome.verdict.value}: {judged.kind} {judged.seed!r}: {outcome.cause}", flush=True)
        if self._done % 500 == 0:
            rate = self._done / (time.monotonic() - self._begin)
            print(f"{self._done} of {self._total}, {rate:.0f} per second", flush=True)


def _report(judged: Sequence[Judged], seconds: float) -> str:
    verdicts = Counter((each.kind, each.outcome.verdict) for each in judged)
    slowest = max(judged, key=lambda each: each.seconds)
    lines = [f"{len(judged)} cases in {seconds:.0f} s; longest case {slowest.seconds:.1f} s ({slowest.seed})", ""]
    for verdict in Verdict:
        counts = {kind: count for (kind, found), count in verdicts.items() if found is verdict}
        if counts:
            each = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
            lines.append(f"{sum(counts.values()):6}  {verdict.value} ({each})")
    for verdict in (Verdict.KNOWN_DIFFERENCE, Verdict.REFUSED_ALONE, Verdict.ACCEPTED_ALONE, Verdict.NOT_COMPARED):
        for title, whole in (("models as generated", True), ("mutated ones", False)):
            causes = Counter(
                each.outcome.cause
                for each in judged
                if each.outcome.verdict is verdict and (each.kind in UNDAMAGED) == whole
            )
            if causes:
                lines += ["", f"{verdict.value}: {title}"]
                lines += [f"{count:6}  {cause}" for cause, count in causes.most_common(MOST_REASONS)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
