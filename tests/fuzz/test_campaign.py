"""A short campaign, the same each time; `make fuzz` draws others."""

from pathlib import Path

import pytest

from dfcompile.frontend.operator_claims import Cover, operator_claims
from tests.fuzz.campaign import Judged, run_campaign
from tests.fuzz.draw import Draw
from tests.fuzz.generated_models import GENERATORS, NEWEST, exists
from tests.fuzz.kinds import KINDS
from tests.fuzz.plan import planned
from tests.onnx_nodes import TABLE


@pytest.mark.slow
def test_short_campaign_finds_nothing(tmp_path: Path) -> None:
    cases = planned(1, models=100, dags=40, files=40, configurations=60, published=False)
    found: list[Judged] = []
    judged = run_campaign(cases, 2, tmp_path / "log", found.append)
    found = [each for each in found if each.outcome.verdict.is_finding]

    assert len(judged) == len(cases)
    assert not found, "\n".join(
        f"python -m tests.fuzz --case {each.kind} {each.seed}: {each.outcome.verdict.value}: {each.outcome.cause}: "
        f"{each.outcome.detail}"
        for each in found
    )


def test_every_claimed_operator_is_generated() -> None:
    claims = operator_claims(frozenset(TABLE.op_types("onnx")))
    drawn = (Cover.EXPANSIONS, Cover.DEFINITION, Cover.REPLACED)
    claimed = {claim.op_type for claim in claims if claim.cover in drawn and exists(claim.op_type, NEWEST)}

    assert set(GENERATORS) == claimed


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"published", "compiled"}))  # which take seconds to collect
def test_a_case_follows_from_its_seed(kind: str) -> None:
    for number in range(20):
        first, again = (KINDS[kind].draw(Draw(f"{kind}{number}")) for _ in range(2))

        assert (first.suffix, first.content) == (again.suffix, again.content)
