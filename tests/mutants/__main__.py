"""``python -m tests.mutants``: how many wrong versions of the package the tests notice, and of reports the audit."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.mutants.campaign import SURVIVED, Result, copied_package, first_failure, judged
from tests.mutants.catalogue import MUTANTS, concerned_tests
from tests.mutants.field_campaign import whole_campaign

ROOT = Path(__file__).parent.parent.parent
SURVIVORS = Path(__file__).parent / "survivors.md"
LEAST_KILLED = 0.9
FIELDS = "fields"  # the area of wrong reports


def main(words: Sequence[str]) -> int:
    """Judge the chosen mutants; 1 if too many survive, or one of which nobody says why."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    known = [*MUTANTS, FIELDS]
    parser.add_argument("areas", nargs="*", default=known, help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds after which a mutant counts as killed")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "mutants.json", help="JSON report")
    parser.add_argument("--as-it-is", action="store_true", help="first see that the tests pass without a mutant")
    given = parser.parse_args(words)
    unknown = sorted(set(given.areas) - set(known))
    if unknown:
        parser.error(f"no area {unknown[0]!r} (known: {', '.join(known)})")
    survived = _report_fields() if FIELDS in given.areas else 0
    areas = [area for area in given.areas if area != FIELDS]
    return max(survived, _judge(areas, given) if areas else 0)


def _report_fields() -> int:
    """Audit every wrong report; 1 if one is accepted, or a number of the schema stands in none."""
    found = whole_campaign()
    print(f"{FIELDS}: {found.mutants - len(found.survivors)} of {found.mutants} refused, of {len(found.fields)} fields")
    for line in (*found.survivors, *(f"in no report: {field}" for field in sorted(found.missed))):
        print(line)
    return int(bool(found.survivors or found.missed))


def _judge(areas: Sequence[str], given: argparse.Namespace) -> int:
    """Judge the mutants of some areas."""
    chosen = [(area, mutant) for area in areas for mutant in MUTANTS[area] if given.only in mutant.name]
    results: dict[str, list[Result]] = {area: [] for area in areas}
    with copied_package(ROOT) as folder:
        if given.as_it_is:
            every = dict.fromkeys(test for _, mutant in chosen for test in concerned_tests(mutant.file))
            failed = first_failure(list(every), folder, given.limit)
            if failed != "":
                print(f"without a mutant: {failed or 'the time limit'}", file=sys.stderr)
                return 1
        for area, mutant in chosen:
            found = judged(mutant, folder, given.limit)
            results[area].append(found)
            print(f"{found.outcome:9} {found.seconds:6.1f} s  {found.mutant}  {found.test}", flush=True)
    return _report(results, given.output)


def _report(results: dict[str, list[Result]], output: Path) -> int:
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({area: [asdict(each) for each in found] for area, found in results.items()}, indent=1))
    survived = [each for found in results.values() for each in found if each.outcome == SURVIVED]
    total = sum(map(len, results.values()))
    explained = SURVIVORS.read_text() if SURVIVORS.exists() else ""
    unexplained = [each.mutant for each in survived if each.mutant not in explained]
    for area, found in results.items():
        killed = sum(each.outcome != SURVIVED for each in found)
        print(f"{area}: {killed} of {len(found)} killed")
    print(f"all: {total - len(survived)} of {total} killed; {output}")
    for name in unexplained:
        print(f"survived, and {SURVIVORS.name} does not say why: {name}")
    return int(bool(unexplained) or total - len(survived) < LEAST_KILLED * total)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
