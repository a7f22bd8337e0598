"""Published measurements: bounds hold, and estimates that saw none of them are as near as the page says."""

import csv

import msgspec

from benchmarks.silicon.chips import ROWS, Row, chip_bound
from benchmarks.silicon.serving import FEW_USERS, SUITE_TENTHS, UNSEEN, compared, mean, rows
from benchmarks.silicon.training import estimated
from benchmarks.silicon.training import rows as training_rows


def test_bounds_of_served_models_hold_and_estimates_are_near() -> None:
    found = [compared(row) for row in rows()[::11]]
    fair = [one for one in found if not one.row.is_waiting]

    assert all(one.bound_ms <= one.row.tpot_ms for one in found)
    assert mean([one.error for one in found]) <= 17
    assert mean([one.error for one in fair]) <= 16
    assert mean([one.error for one in fair if one.row.kind == "dense bf16"]) <= 13
    assert mean([one.error for one in fair]) < 0.7 * mean([one.decode_ms / one.row.tpot_ms - 1 for one in fair])


def test_estimates_of_a_chip_whose_rows_were_not_looked_at_are_as_near() -> None:
    found = [compared(row) for row in rows(UNSEEN)]

    assert len(found) == 132
    assert all(one.bound_ms <= one.row.tpot_ms for one in found)
    assert mean([one.error for one in found]) <= 10
    assert mean([one.first_error for one in found if one.row.users <= FEW_USERS]) <= 30


def test_first_tokens_of_few_users_are_near() -> None:
    few = [row for row in rows() if row.users <= FEW_USERS]

    assert len(few) == 128
    assert mean([compared(row).first_error for row in few[::3]]) <= 28


def test_rows_with_the_number_of_clients_wait_as_ten_requests_for_a_place_do() -> None:
    capped = [row for row in rows() if row.is_capped]
    answers = [row.ttft_ms / (row.answer * SUITE_TENTHS / 10 * row.tpot_ms) for row in capped]

    assert len(capped) == 9
    assert all(4.2 < waited < 4.9 for waited in answers)  # (10 - 1) / 2, and what the first token takes itself


def test_first_tokens_take_what_the_host_issues_their_kernels_in_however_short_prompts_are() -> None:
    eight = [row for row in rows() if row.checkpoint.startswith("Qwen/Qwen3-235B") and row.system == "h100-sxm"]
    few = [row for row in eight if row.users == FEW_USERS and row.tensor == 8]
    measured, estimated = [row.ttft_ms for row in few], [compared(row).ttft_ms for row in few]

    assert {row.prompt for row in few} == {512, 1024}
    assert max(measured) / min(measured) < 1.04
    assert max(estimated) / min(estimated) < 1.01


def test_bounds_of_other_chips_hold() -> None:
    rows = [msgspec.convert(one, Row, strict=False) for one in csv.DictReader(ROWS.read_text().splitlines())]
    found = [chip_bound(row) for row in rows if row.kind != "images"]

    assert len(found) == 13
    assert all(0 < one.bound_ms <= one.measured_ms for one in found)


def test_training_of_megatron_is_within_10_percent_and_bounds_hold() -> None:
    for row in training_rows():
        found = estimated(row)
        assert abs(found.exec_s / row.seconds - 1) <= 0.1, row
        assert estimated(row, is_calibrated=False).exec_s <= row.seconds, row
        if row.activation_gib:
            assert abs(found.held.activations / 2**30 / float(row.activation_gib) - 1) <= 0.025, row
