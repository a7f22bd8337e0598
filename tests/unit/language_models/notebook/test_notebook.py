"""The notebook's rows, totals and printed text, mistakes included."""

import csv
import json
import math
import re
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_configuration
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.notebook.counting import (
    BYTES_PER_VALUE,
    NotebookKernel,
    NotebookMachine,
    chunk_sizes,
    chunked,
    decode,
    estimate,
    folded,
    notebook_machine,
    notebook_model,
    prefill,
)
from dfcompile.language_models.notebook.printing import frame_text, notebook_text, short_number
from dfcompile.records import replace

DATA = Path(__file__).parents[3] / "data" / "llm"
MODEL = notebook_model(read_configuration("llama-3.1-8b").values, "llama-3.1-8b")
MACHINES = {name: notebook_machine(shipped_devices()[name]) for name in ("NVL-AX", "JGS")}
SCENARIOS: dict[str, tuple[NotebookKernel, ...]] = {
    "prefill_1024_b1": prefill(MODEL, 1024, 1),
    "prefill_8192_b1": prefill(MODEL, 8192, 1),
    "decode_ctx8448_b256": decode(MODEL, 8448, 256),
    "chunked_p241_ctx4615_d15_ctx8448": chunked(MODEL, chunk_sizes(8192, 512, 256)),
    "decode_ctx1024_b256": decode(MODEL, 1024, 256),
    "chunked_1024_1024": chunked(MODEL, chunk_sizes(1024, 1024, 256)),
    "prefill_8192_b1_typo_fixed_naively": tuple(
        replace(one, grouped=MODEL.heads / MODEL.kv_heads) if one.kind == "Ma_Mqa" else one
        for one in prefill(MODEL, 8192, 1)
    ),
}


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((DATA / name).read_text().splitlines()))


def same(found: float | str | None, expected: str) -> bool:
    if expected == "" or isinstance(found, str) or found is None:
        return (found or "") == expected
    return math.isclose(found, float(expected), rel_tol=1e-12, abs_tol=0.0)


def roofline_s(kernel: NotebookKernel, machine: NotebookMachine) -> tuple[float, float, float]:
    """Compute time, memory time and the larger one, as the notebook's cell that was never run has them."""
    compute = (kernel.compute or 0) / machine.macs_per_second
    memory = ((kernel.weight or 0) + (kernel.kv_cache or 0)) * BYTES_PER_VALUE / machine.bandwidth
    return compute, memory, max(compute, memory)


def test_all_128_rows_are_those_of_the_notebook() -> None:
    reference = rows("notebook_compat_kernels.csv")

    assert len(reference) == 128
    for row in reference:
        one, machine = SCENARIOS[row["scenario"]][int(row["idx"])], MACHINES[row["arch"]]
        found = estimate(one, machine)
        values = dict(
            zip(
                list(row)[3:],
                (
                    one.kind, one.name, one.m, one.k, one.n, one.batch, one.grouped, one.compute, one.weight,
                    one.kv_cache, found.tile, found.compute_cycles, found.memory_cycles, found.ratio, found.cycles,
                    found.bound, *roofline_s(one, machine),
                ),
                strict=True,
            )
        )  # fmt: skip
        assert all(same(value, row[key]) for key, value in values.items()), (row, values)


def test_totals_are_those_of_the_notebook() -> None:
    for row in rows("notebook_compat_totals.csv"):
        kernels, machine = SCENARIOS[row["scenario"]], MACHINES[row["arch"]]
        found = [estimate(one, machine) for one in kernels]
        cycles = {word: sum(one.cycles or 0 for one in found if one.bound == word) for word in ("Compute", "Memory")}
        whole = sum(cycles.values())

        assert [sum(getattr(one, key) or 0 for one in kernels) for key in ("compute", "weight", "kv_cache")] == [
            int(row[key]) for key in ("compute_macs", "weight_elems", "kv_elems")
        ]
        assert same(cycles["Compute"], row["compute_bound_cycles"])
        assert same(cycles["Memory"], row["memory_bound_cycles"])
        assert same(whole, row["sum_exec_cycles_1_layer"])
        assert same(whole / machine.frequency * MODEL.layers, row["time_s_all_layers"])


@pytest.mark.parametrize(("name", "file"), [("NVL-AX", "notebook_nvl_ax.txt"), ("JGS", "notebook_jgs.txt")])
def test_the_printed_text_is_the_notebooks_byte_for_byte(name: str, file: str) -> None:
    assert notebook_text(MODEL, MACHINES[name]) == (DATA / file).read_text()


def test_tables_wrap_as_pandas_wraps_them() -> None:
    import pandas as pd

    columns: dict[str, list[object]] = {
        "type": ["a", "bb", "ccc"],
        "small": [1e-7, 2.0, math.nan],
        "large": [4429185024.0, math.nan, 3.5],
        "whole": [12.0, 1e5, 7.25],
        "a_column_of_many_letters": [0.5, 0.25, 1 / 3],
        "other": ["x" * 20, None, "y"],
    }
    floats = [name for name, cells in columns.items() if any(isinstance(cell, float) for cell in cells)]
    with pd.option_context("display.width", 80, "display.max_columns", 20):
        expected = str(pd.DataFrame({name: pd.Series(cells, dtype=object if name in ("type", "other") else float)
                                     for name, cells in columns.items()}))  # fmt: skip

    assert frame_text(columns, floats) == expected


def test_trap_t1_the_slip_of_the_pen_is_right_by_accident() -> None:
    counted = sum(one.compute or 0 for one in SCENARIOS["prefill_8192_b1_typo_fixed_naively"])
    kept = sum(one.compute or 0 for one in SCENARIOS["prefill_8192_b1"])

    assert (counted, kept) == (3_985_729_650_688, 2_336_462_209_024)


def test_trap_t3_decodes_in_a_chunk_are_narrow_there() -> None:
    assert SCENARIOS["chunked_p241_ctx4615_d15_ctx8448"][2].compute == 62_914_560


def test_trap_t4_the_root_of_three_is_no_mean() -> None:
    assert chunk_sizes(8192, 512, 256).prompt_context == 4615


def test_trap_t10_folding_a_batch_scales_weights() -> None:
    side, _, other = folded((1, 4096, 8), 256)

    assert side == other
    assert side == pytest.approx(45.25, abs=0.01)


def test_trap_t12_and_t13_its_tiles_are_no_whole_numbers() -> None:
    assert estimate(SCENARIOS["prefill_8192_b1"][0], MACHINES["NVL-AX"]).tile == "2508.3x2508.3x2508.3"


def test_trap_t18_its_suffixes_are_binary() -> None:
    assert [short_number(count) for count in (74_766_790_688_768, 2**20 - 1, 2**30 - 2**14)] == [
        "68.0T", "1048575", "1024.0M",
    ]  # fmt: skip


def test_configurations_without_its_keys_are_refused_as_there() -> None:
    with pytest.raises(UserError, match=re.escape("gpt2: key 'hidden_size': found None")):
        notebook_model(read_configuration("gpt2").values, "gpt2")


def test_what_its_assumptions_cost_on_other_models() -> None:
    names = {theirs: ours for ours, theirs in json.loads((DATA / "names.json").read_text()).items()}
    for row in rows("notebook_on_other_models.csv"):
        if not row["nb_kv"] or row["model"] not in names:
            continue
        model = notebook_model(read_configuration(names[row["model"]]).values, row["model"])
        weights = sum(one.weight or 0 for one in prefill(model, 8, 1)) * model.layers
        store = prefill(model, 1, 1)[-1].kv_cache

        assert store is not None
        assert (weights, 2 * store * model.layers) == (int(row["notebook_layer_weights"]), int(row["nb_kv"]))
