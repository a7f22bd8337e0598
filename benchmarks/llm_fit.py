"""Fits efficiencies anew: ``python -m benchmarks.llm_fit MEASURED.csv --peak 312e12 --bandwidth 2.039e12``.

The file has a row per measured operator: ``work`` (a class such as ``gemm`` or ``gemm fp8``), ``flops``, ``bytes``,
``microseconds``, and optionally ``peak`` (operations per second of its format), ``launches`` (kernels that it is),
``inputs`` (bytes of activations read), ``products`` (after the first one) and ``held_out`` (1: not fitted on, but
reported). Public tables of that kind are AIConfigurator's (Apache-2.0); `benchmarks.silicon.operators` makes such rows
of them. All-reduces have ``work`` all_reduce, ``chips`` and ``bytes``. The result is a calibration that `--efficiency`
reads.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls  # type: ignore[import-untyped]

Column = NDArray[np.float64]
ROUNDS = 20  # in which all-reduces are shared among two ways at most
NEARER = 0.9  # of the error of one way, below which two are worth their parameters
SOFT = 0.1  # where a logarithmic error begins to count less than its square


@dataclass(frozen=True, slots=True)
class Measured:
    """Operators of a class: operations, bytes, seconds, kernels, peak rate, activations read and products of each."""

    flops: Column
    bytes: Column
    seconds: Column
    launches: Column
    peak: Column
    inputs: Column
    products: Column


def predicted(parameters: Sequence[float] | Column, rows: Measured, bandwidth: float) -> Column:
    """Return ``t0 + ((F / (ec peak))^p + M^p)^(1/p)``; t0 is in microseconds, the time of a product in nanoseconds.

    ``M = (B + again A) / (em bw) + product n`` is of traffic and products.
    """
    compute, memory, start_us, norm, *beside = parameters
    again, product_ns = beside or (0.0, 0.0)
    first = rows.flops / (compute * rows.peak)
    second = (rows.bytes + again * rows.inputs) / (memory * bandwidth) + product_ns * 1e-9 * rows.products
    longest = np.maximum(np.maximum(first, second), 1e-30)
    scaled: Column = longest * ((first / longest) ** norm + (second / longest) ** norm) ** (1 / norm)
    whole: Column = start_us * 1e-6 * rows.launches + scaled
    return whole


def fitted(rows: Measured, bandwidth: float) -> list[float]:
    """Return the parameters of the least soft logarithmic error: the last two where a row has what they count."""
    counted = [float(np.any(column)) for column in (rows.inputs, rows.products)]
    beside = counted if any(counted) else []
    found = least_squares(
        lambda parameters: np.log(predicted(parameters, rows, bandwidth) / rows.seconds),
        x0=[0.7, 0.7, 5.0, 2.0, *(1.0 for _ in beside)],
        bounds=([0.01, 0.01, 0.0, 1.0, *(0.0 for _ in beside)], [1.0, 1.0, 1000.0, 20.0, *(1000.0 for _ in beside)]),
        loss="soft_l1",
        f_scale=SOFT,
    )
    return [float(f"{round(value, 6):.4g}") for value in found.x * [1.0, 1.0, 1.0, 1.0, *beside]]


def fitted_all_reduce(chips: Column, amounts: Column, seconds: Column) -> list[float]:
    """Return start and hop in microseconds and bandwidth in GB/s of the least relative error, of one way or of two.

    Where two ways, of which the faster one is taken, are `NEARER`, those of the direct one follow. Amounts are shared
    among the two by turns: a line through each one's amounts, then each amount to the faster line.
    """
    others = chips - 1
    moved = np.stack([2 * others / chips * amounts, others * amounts])

    def line(of: Column, chosen: NDArray[np.bool_]) -> Column:
        columns = np.stack([np.ones_like(chips), others, of], axis=1)[chosen]
        found: Column = nnls(columns / seconds[chosen, None], np.ones(int(chosen.sum())))[0]
        if found[2] <= 0:
            raise SystemExit("all_reduce: found no bandwidth (larger messages are needed)")
        return np.array([float(f"{value:.4g}") for value in (found[0] * 1e6, found[1] * 1e6, 1e-9 / found[2])])

    def taken(way: Column, of: Column) -> Column:
        found: Column = 1e-6 * (way[0] + way[1] * others) + of * 1e-9 / way[2]
        return found

    def error(found: Column) -> float:
        return float(np.mean(np.abs(found / seconds - 1)))

    one = line(moved[0], np.ones(len(chips), dtype=bool))
    ways, is_direct = [one], amounts <= np.median(amounts)
    for _ in range(ROUNDS):
        pair = [line(moved[0], ~is_direct), line(moved[1], is_direct)]
        times = [taken(way, of) for way, of in zip(pair, moved, strict=True)]
        if error(np.minimum(*times)) < NEARER * error(taken(one, moved[0])):
            ways = pair
        now = times[1] < times[0]
        if bool(np.all(now == is_direct)) or now.all() or not now.any():
            break
        is_direct = now
    return [float(number) for way in ways for number in way]


def mean_error(parameters: Sequence[float], rows: Measured, bandwidth: float) -> float:
    """Return the mean absolute relative error."""
    return float(np.mean(np.abs(predicted(parameters, rows, bandwidth) / rows.seconds - 1)))


def calibration(rows: Sequence[dict[str, str]], peak: float, bandwidth: float, source: str) -> dict[str, object]:
    """Return a calibration that has what was measured, and its error on what was held out."""
    made: dict[str, object] = {"source": source}
    errors = []
    for work in dict.fromkeys(row["work"] for row in rows if row["work"] != "all_reduce"):
        kept = [row for row in rows if row["work"] == work and row.get("held_out", "") != "1"]
        parameters = fitted(measured(kept, peak), bandwidth)
        made[work] = parameters
        out = [row for row in rows if row["work"] == work and row.get("held_out", "") == "1"]
        shown = mean_error(parameters, measured(out or kept, peak), bandwidth)
        errors.append(f"{work} {100 * shown:.1f} % on {len(out or kept)} rows {'held out' if out else 'fitted'}")
    reduces = [row for row in rows if row["work"] == "all_reduce"]
    if reduces:
        chips = np.array([float(row["chips"]) for row in reduces])
        found = measured(reduces, peak)
        made["all_reduce"] = fitted_all_reduce(chips, found.bytes, found.seconds)
    made["error"] = "; ".join(errors)
    return made


def measured(rows: Sequence[dict[str, str]], peak: float) -> Measured:
    """Return the columns of some rows; those that say no peak rate have the one given."""
    return Measured(
        np.array([float(row["flops"] or 0) for row in rows]),
        np.array([float(row["bytes"] or 0) for row in rows]),
        np.array([float(row["microseconds"]) * 1e-6 for row in rows]),
        np.array([float(row.get("launches") or 1) for row in rows]),
        np.array([float(row.get("peak") or peak) for row in rows]),
        np.array([float(row.get("inputs") or 0) for row in rows]),
        np.array([float(row.get("products") or 0) for row in rows]),
    )


def main() -> int:
    """Fit a file and print the calibration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--peak", type=float, required=True, help="operations per second")
    parser.add_argument("--bandwidth", type=float, required=True, help="bytes per second")
    parser.add_argument("--source", default="", help="where the rows come from")
    given = parser.parse_args()
    rows = list(csv.DictReader(given.measured.read_text().splitlines()))
    print(json.dumps(calibration(rows, given.peak, given.bandwidth, given.source or given.measured.name), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
