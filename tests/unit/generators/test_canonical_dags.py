"""Generated graphs have the published sizes and are canonical for any seed."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, NodeKind, critical_path, streaming_depth, total_work
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian, volume_walk

GENERATORS: tuple[Callable[[int, int, int | None], CanonicalDag], ...] = (
    chain,
    cholesky,
    lambda size, volume, seed: fft(2**size, volume, seed),
    lambda size, volume, seed: gaussian(size + 1, volume, seed),
    lambda size, volume, seed: fork_join(size, 2 * size, volume, seed),
)


def sizes(dag: CanonicalDag) -> tuple[int, int]:
    return dag.tasks_count, dag.edges_count


@pytest.mark.parametrize("n", [1, 2, 8, 50])
def test_chain_sizes(n: int) -> None:
    assert sizes(chain(n)) == (n, n + 1)


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_fft_sizes(k: int) -> None:
    n = 2**k

    assert sizes(fft(n)) == (n * k + 2 * n - 2, 2 * n * k + 3 * n - 2)


@pytest.mark.parametrize("n", [2, 3, 16, 30])
def test_gaussian_sizes(n: int) -> None:
    assert sizes(gaussian(n)) == ((n * n + n - 2) // 2, n * (n - 1))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15])
def test_cholesky_sizes(n: int) -> None:
    assert sizes(cholesky(n)) == (n * (n + 1) * (n + 2) // 6, (n - 1) ** 2 + n + n * (n - 1) ** 2 // 2)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 5), (20, 4)])
def test_fork_join_sizes(n: int, m: int) -> None:
    assert sizes(fork_join(n, m)) == (n + m + 2, 2 * n + 2 * m + 1)


def test_published_task_counts() -> None:
    assert [dag.tasks_count for dag in (chain(8), fft(32), gaussian(16), cholesky(8))] == [8, 222, 135, 120]


def test_elementwise_chain_has_the_published_depths() -> None:
    dag = chain(8)

    assert (total_work(dag), critical_path(dag), streaming_depth(dag)) == (16_384, 16_384, 2_055)


@given(st.sampled_from(GENERATORS), st.integers(1, 5), st.integers(1, 100), st.integers(0, 2**32))
def test_every_seed_gives_a_canonical_graph_and_the_same_one_twice(
    generate: Callable[[int, int, int | None], CanonicalDag], size: int, volume: int, seed: int
) -> None:
    assert generate(size, volume, seed) == generate(size, volume, seed)


@pytest.mark.parametrize("generate", GENERATORS)
def test_without_a_seed_no_task_changes_its_rate(generate: Callable[[int, int, int | None], CanonicalDag]) -> None:
    dag = generate(5, 64, None)

    assert set(dag.edge_volume.tolist()) == {64}
    assert NodeKind.DOWNSAMPLER not in dag.kind
    assert NodeKind.UPSAMPLER not in dag.kind


def test_seeds_differ() -> None:
    assert chain(8, 2048, 1) != chain(8, 2048, 2)


def test_volumes_keep_or_multiply_by_the_published_factors() -> None:
    volumes = volume_walk(20_000, 2048, 7)
    kept = sum(left == right for left, right in pairwise(volumes))

    assert all(
        right in {left, left // 4, left // 3, left // 2, 2 * left, 3 * left, 4 * left, 1, 2_048_000}
        for left, right in pairwise(volumes)
    )
    assert 0.3 < kept / len(volumes) < 0.45


@pytest.mark.parametrize(
    ("generate", "message"),
    [
        (lambda: chain(0), "chain: size 0 against 1 or more"),
        (lambda: chain(4, 0), "chain: volume 0 against 1 or more"),
        (lambda: chain(4, 2**70), "chain: volume 1180591620717411303424 against at most 281474976710"),
        (lambda: chain(10**9), "chain: 1000000000 tasks against at most 10000000"),
        (lambda: fft(12), "fft: 12 points against a power of two, 2 or more"),
        (lambda: fft(1), "fft: 1 points against a power of two, 2 or more"),
        (lambda: fft(-4), "fft: -4 points against a power of two, 2 or more"),
        (lambda: gaussian(1), "gaussian: size 1 against 2 or more"),
        (lambda: cholesky(100_000), "cholesky: 166671666700000 tasks against at most 10000000"),
        (lambda: fork_join(3, 0), "fork-join: second 0 against 1 or more"),
    ],
)
def test_impossible_sizes_are_refused(generate: Callable[[], CanonicalDag], message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        generate()


def test_tiled_cholesky_of_many_tasks() -> None:
    assert cholesky(90, 2048, 1).tasks_count == 125_580
