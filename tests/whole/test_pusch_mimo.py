"""The example of PUSCH detection: data as the profile asked for, physics as theory has it, linear cost."""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dfcompile as df
from dfcompile.report.figures import Result
from tests.fuzz.drawn_machines import DrawnMachine

FOLDER = Path(__file__).parents[2] / "examples" / "pusch_mimo"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("data")


def test_matrices_are_inverted_one_after_the_other() -> None:
    """Little more is moved than what comes in and goes out, though all matrices exceed the SRAM many times."""
    sizes = {"N": 12, "R": 24, "L": 4}
    run = df.compile(FOLDER / "mimo.py", pes=[32], dims=sizes, micro_batches="whole")
    (result,) = run.report.results
    mapping = result.mapping
    assert mapping is not None
    assert mapping.ideal.compute_s is not None

    assert mapping.dram_bytes <= 3 * mapping.ideal.memory_s * 300e9
    assert mapping.time_s <= 1.2 * mapping.ideal.compute_s


# All subcarriers at once; that the user's number is kept fewer subcarriers show, with less to search: of two matrices
# 512 pieces would be chosen.
@pytest.mark.parametrize(
    ("subcarriers", "micro_batches", "rules"),
    [(12, "whole", ()), (2, "whole", ("inv_line29:pieces=2",)), (4, "auto", ("inv_line29:pieces=4",))],
)
def test_shorter_tasks_are_chosen_for_a_slow_dram_unless_the_user_says_how_many(
    subcarriers: int, micro_batches: str, rules: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    machine = DrawnMachine(pes=32, sram_bytes=87_381, gb_per_s=3.0).file()
    sizes = {"N": subcarriers, "R": 24, "L": 4}
    run = df.compile(
        FOLDER / "mimo.py", pes=[32], dims=sizes, system=machine, granularity=rules, micro_batches=micro_batches
    )

    (point,) = run.exploration.points
    pieces = point.variant.extraction.granularity.pieces_of("inv_line29")

    assert (point.micro_batches is None) == (micro_batches == "whole")
    assert pieces == subcarriers if rules else pieces is not None and pieces > 32 * 4


@pytest.fixture
def physics(data: ModuleType) -> ModuleType:
    assert data
    return importlib.import_module("physics")


@pytest.mark.parametrize("profile", ["A", "B", "C"])
@pytest.mark.parametrize("spread_s", [30e-9, 300e-9])
def test_delay_spread_is_what_was_asked_for(profile: str, spread_s: float, data: ModuleType) -> None:
    setting = data.Setting(profile=profile, delay_spread_s=spread_s)

    assert data.delay_spread(setting) == pytest.approx(spread_s, rel=1e-3)


@pytest.mark.parametrize("profile", ["A", "B", "C"])
def test_channels_are_alike_as_the_profile_says(profile: str, data: ModuleType) -> None:
    setting = data.Setting(profile=profile, antenna_correlation=0.5)
    drawn = data.channels(101, 8, 4000, seed=1, setting=setting)

    assert np.mean(np.abs(drawn) ** 2) == pytest.approx(1, abs=0.02)
    for distance in (10, 50, 100):
        found = np.mean(drawn[distance] * np.conj(drawn[0]))
        assert found == pytest.approx(data.frequency_correlation(setting, distance), abs=0.02)
    between = np.einsum("nru,nqu->rq", drawn, np.conj(drawn)) / (drawn.shape[0] * drawn.shape[2])
    np.testing.assert_allclose(between, data.correlation(8, 0.5), atol=0.06)


def test_the_same_seed_gives_the_same_grid(data: ModuleType) -> None:
    one, other, third = (data.received(8, 4, 2, seed=seed) for seed in (5, 5, 6))

    assert np.array_equal(one.signal, other.signal)
    assert not np.array_equal(one.signal, third.signal)
    np.testing.assert_allclose(one.covariance, np.conj(np.swapaxes(one.covariance, 1, 2)))


def test_symbols_share_a_channel(data: ModuleType) -> None:
    grid = data.received(8, 4, 2, seed=5, symbols=3)

    assert grid.signal.shape == (24, 4)
    assert np.array_equal(grid.channel[:8], grid.channel[16:])
    assert np.array_equal(grid.covariance[:8], grid.covariance[16:])
    assert np.array_equal(grid.channel, grid.true_channel)
    assert not np.array_equal(grid.symbols[:8], grid.symbols[16:])
    noise = grid.signal - (grid.channel @ grid.symbols[..., None])[..., 0]
    expected = np.mean(np.real(np.trace(grid.covariance, axis1=1, axis2=2))) / 4
    assert np.mean(np.abs(noise) ** 2) == pytest.approx(expected, rel=0.4)


def test_settings_that_are_none(data: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"profile 'Z' against one of A, B, C"):
        data.Setting(profile="Z")
    with pytest.raises(ValueError, match=r"antenna correlation 1\.0 against 0 to below 1"):
        data.Setting(antenna_correlation=1.0)
    with pytest.raises(ValueError, match=r"model 'X' against one of TDL, CDL, best"):
        data.Setting(model="X")


def test_directions_need_sionna(data: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "has_sionna", lambda: False)

    with pytest.raises(
        ValueError, match=r"model 'CDL' without Sionna against TDL or best \(try 'pip install sionna-no"
    ):
        data.Setting(model="CDL")
    with pytest.raises(ValueError, match=r"reference signals without Sionna against none \(try 'pip install sionna-no"):
        data.Setting(reference_signals=True)
    own = data.received(4, 2, 1, seed=3, setting=data.Setting(model="TDL"))
    assert np.array_equal(data.received(4, 2, 1, seed=3).channel, own.channel)


@pytest.mark.parametrize(("antennas", "layers", "snr_db"), [(2, 1, 0.0), (4, 1, 5.0), (8, 4, 0.0), (64, 8, -10.0)])
def test_errors_are_as_theory_has_them(antennas: int, layers: int, snr_db: float, physics: ModuleType) -> None:
    """One layer against the closed form of maximum ratio combining, several against the SINR of their channels."""
    found = physics.measured(snr_db, antennas, layers, count=40_000 // (antennas * layers), seed=1)

    assert max(found.deviations) < 5


def test_one_layer_in_closed_form(physics: ModuleType) -> None:
    """One antenna: ``(1 - sqrt(g / (1 + g))) / 2``; the ratio of many falls on the mean."""
    assert physics.combining_errors(10.0, 1) == pytest.approx((1 - (5 / 6) ** 0.5) / 2)


def test_cost_is_linear_in_subcarriers() -> None:
    """910 times as many subcarriers on 36 tasks per step: 910 times the cycles and I/O, in as many tasks."""
    few, many = (cost_of(subcarriers) for subcarriers in (36, 32_760))

    assert many[1] == 910 * few[1]
    assert many[0] == pytest.approx(910 * few[0], rel=0.02)


def test_streams_cost_no_time() -> None:
    """Elements that wait for streams gain nothing where all tasks are short: two tries alone end with 404 cycles."""
    run = df.compile(
        FOLDER / "mimo.py",
        pes=[16],
        dims={"N": 12, "R": 4, "L": 2},
        expand=["linalg.inv=cholesky"],
        granularity="pieces=12",
    )
    found = run.report.results[0].schedule

    assert found is not None
    assert found.makespan_cycles is not None
    assert found.makespan_cycles <= found.non_streaming_makespan_cycles == 306


def test_subcarriers_are_split_over_chips() -> None:
    """Each chip has its own subcarriers, through maps, inverses and products: nothing is sent."""
    run = df.compile(
        FOLDER / "mimo.py",
        pes=64,
        dims={"N": 16, "R": 8, "L": 2},
        chips=[1, 4],
        system="sn10",
        expand=["linalg.inv=lu"],
    )
    one, four = (result.mapping for result in run.report.results)

    assert one is not None
    assert four is not None
    assert (four.chips, four.network_bytes, four.exchanges) == (4, 0, ())
    assert four.time_s < one.time_s / 3


def repeated(repeat: int, timing: str = "exact") -> Result:
    run = df.compile(
        FOLDER / "mimo.py",
        pes=[32],
        repeat=repeat,
        timing=timing,
        dims={"N": 8, "R": 4, "L": 2},
        expand=["linalg.inv=lu"],
    )
    return run.report.results[0]


def test_batches_of_subcarriers_overlap() -> None:
    """100 batches of 8: one starts when elements are free, not when the one before has ended."""
    result = repeated(100)
    found, scheduled = result.repetition, result.schedule

    assert found is not None
    assert scheduled.makespan_cycles is not None
    assert (found.repeats, found.in_sequence_cycles) == (100, 100 * scheduled.makespan_cycles)
    assert found.makespan_cycles < 0.8 * found.in_sequence_cycles
    # the first batch takes 249 cycles; a shorter interval, of a schedule on fewer elements, takes longer in all
    assert found.makespan_cycles <= 1.165 * 100 * found.least_interval_cycles
    assert found.interval_cycles <= 1.1 * found.least_interval_cycles
    assert found.io_elements == 100 * scheduled.io_elements
    assert repeated(1).repetition is None
    with pytest.raises(df.UserError, match=r"^repeat: found steady times against exact ones \(--timing exact\)$"):
        repeated(2, "steady")
    with pytest.raises(df.UserError, match=r"^--repeat"):
        repeated(0)


def cost_of(subcarriers: int) -> tuple[int, int]:
    """Return makespan and I/O of small matrices."""
    run = df.compile(
        FOLDER / "mimo.py",
        pes=[64],
        dims={"N": subcarriers, "R": 4, "L": 2},
        expand=["linalg.inv=lu"],
        granularity="pieces=36",
    )
    found = run.report.results[0].schedule
    assert found is not None
    assert found.makespan_cycles is not None
    assert found.io_elements is not None
    return found.makespan_cycles, found.io_elements
