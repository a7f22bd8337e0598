"""The page of operators: what is claimed of each one of ONNX, and which of its published node tests pass.

``python -m tests.operators_page`` runs all node tests (interpreted, some minutes) and writes docs/operators.md and the
list of the tests that do not pass, from which the page counts; ``--page`` writes the page alone, if what passes is as
it was. A test of the suite compares the page with what is
claimed now, and some of the node tests with the list.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.operator_claims import Claim, Cover, known_operators, operator_claims
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, every_case, tolerance
from tests.onnx_nodes import TABLE, assert_same

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "operators.md"
NOT_PASSED = ROOT / "tests" / "data" / "node_tests_not_passed.txt"
_OPTIONS = ReadOptions(operators=frozenset(TABLE.op_types("onnx")))
_LONGEST = 150  # characters of a reason

HEAD = """# Operators

What dfcompile makes of each operator of ONNX, and how many of the node tests that ONNX publishes pass, each with the
operands that fix shapes as constants. A test that does not pass is refused with a line that names the node; none gives
another value. Written by `python -m tests.operators_page`; `dfcompile ops` lists the same without the tests.

"""


def outcome(case: NodeCase) -> str:
    """Return nothing if a node test passes, else the reason why it is refused.

    Raises:
        AssertionError: it computes something else.
    """
    try:
        canonical = lower_to_canonical(program_of("model", case.model, _OPTIONS), TABLE)
    except UserError as error:
        return shortened(" ".join(str(error).split()))
    program = lower_to_maps(canonical, TABLE)
    extract(program.sdfg)
    assert_same(interpret(program, case.feeds), case.expected, tolerance(case), tolerance(case) * 1e-1)
    return ""


def shortened(reason: str) -> str:
    return reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 1]}…"


def not_passed() -> dict[str, str]:
    """Return the node tests that are listed as not passing, each with its reason."""
    lines = (line.partition(": ") for line in NOT_PASSED.read_text().splitlines())
    return {name: reason for name, _, reason in lines}


def page() -> str:
    """Return the page as it would be now, with the listed node tests."""
    failing = not_passed()
    total = Counter(case.about for case in every_case())
    passed = Counter(case.about for case in every_case() if case.name not in failing)
    claims = operator_claims(frozenset(TABLE.op_types("onnx")))
    claimed = [claim for claim in claims if claim.cover is not Cover.REFUSED]
    of_claimed = [sum(count[claim.op_type] for claim in claimed) for count in (passed, total)]
    summary = (
        f"{len(claimed)} of {len(claims)} operators; {sum(passed.values())} of {sum(total.values())} node tests pass, "
        f"of those of the claimed operators {of_claimed[0]} of {of_claimed[1]}.\n\n"
    )
    return HEAD + summary + "".join((*_sections(claims, passed, total), *_contributed()))


def _sections(claims: tuple[Claim, ...], passed: Mapping[str, int], total: Mapping[str, int]) -> Iterator[str]:
    for cover in Cover:
        found = [claim for claim in claims if claim.cover is cover]
        if not found:
            continue
        yield f"## {cover.value[:1].upper()}{cover.value[1:]}\n\n"
        if cover is Cover.EXPANSIONS:
            yield "`*` is taken where `--expand` names none, `+` instead of it where its description says so.\n\n"
        what = {Cover.EXPANSIONS: "expansions", Cover.REFUSED: "reason", Cover.REPLACED: "by"}.get(cover, "")
        yield f"| operator | operator sets |{f' {what} |' if what else ''} node tests |\n"
        yield f"|---|---|{'---|' if what else ''}---|\n"
        for claim in found:
            tests = f"{passed.get(claim.op_type, 0)} of {total[claim.op_type]}" if total.get(claim.op_type) else "none"
            detail = _expansions(claim.op_type) if cover is Cover.EXPANSIONS else claim.reason
            versions = ", ".join(map(str, claim.versions))
            yield f"| {claim.op_type} | {versions} |{f' {detail} |' if what else ''} {tests} |\n"
        yield "\n"


def _contributed() -> Iterator[str]:
    """Yield the operators of other domains than ONNX's, of which there are no published tests."""
    yield "## Operators of onnxruntime\n\n| operator | expansions |\n|---|---|\n"
    for op_type in TABLE.op_types("onnx"):
        if op_type not in known_operators():
            yield f"| {op_type} | {_expansions(op_type)} |\n"


def _expansions(op_type: str) -> str:
    named = TABLE.by_operator["onnx", op_type]
    listed = []
    for name, found in sorted(named.items()):
        mark = "*" if found.is_default or len(named) == 1 else "+" if found.condition is not None else ""
        listed.append(f"`{name}`{mark and f' {mark}'}: {found.summary.replace('``', '`').replace('|', chr(92) + '|')}")
    return "<br>".join(listed)


def _list_again() -> None:
    reasons = {}
    for case in every_case():
        try:
            reasons[case.name] = outcome(case)
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {error}") from error
    lines = [f"{name}: {reason}\n" for name, reason in sorted(reasons.items()) if reason]
    NOT_PASSED.write_text("".join(lines))


if __name__ == "__main__":
    if "--page" not in sys.argv[1:]:
        _list_again()
    PAGE.write_text(page())
