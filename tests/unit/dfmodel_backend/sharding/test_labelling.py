"""Labellings of least cost: elimination against all labellings."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile.dfmodel_backend.sharding.designs
from dfcompile.dfmodel_backend.sharding.designs import Labelling, Levels, least_labels
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import UserError

DIMS = (Dim.M, Dim.K, Dim.N, Dim.NONE)
LARGE = st.sampled_from([0, 0, 1, 2, 3, 768, 2048, 3 * 10**9])  # bytes of tensors, tiny ones beside huge ones


@st.composite
def labellings(draw: st.DrawFn, most: int = 5) -> Labelling:
    count = draw(st.integers(1, most))
    labels = {
        node: tuple(draw(st.lists(st.sampled_from(DIMS), min_size=1, max_size=3, unique=True))) for node in range(count)
    }
    alone = {(node, label): draw(costs()) for node in labels for label in labels[node] if draw(st.booleans())}
    between = {
        (first, second): {
            (one, other): draw(costs())
            for one in labels[first]
            for other in labels[second]
            if draw(st.booleans())
        }
        for first, second in itertools.combinations(labels, 2)
        if draw(st.integers(0, 2))
    }  # fmt: skip
    return Labelling(labels, alone, between, 3)


def costs() -> st.SearchStrategy[Levels]:
    return st.tuples(LARGE, LARGE, st.integers(0, 4))


def least(problem: Labelling) -> Levels:
    every = itertools.product(*problem.labels.values())
    return min(problem.cost(dict(zip(problem.labels, labels, strict=True))) for labels in every)


@given(labellings())
def test_elimination_is_as_good_as_the_best_of_all_labellings(problem: Labelling) -> None:
    found = least_labels(problem)

    assert problem.cost(found) == least(problem)


def test_a_graph_that_is_too_wide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = {(0, 1): {(Dim.M, Dim.N): (1,)}}
    problem = Labelling({0: (Dim.M, Dim.N), 1: (Dim.M, Dim.N)}, {}, pair, 1)
    monkeypatch.setattr(dfcompile.dfmodel_backend.sharding.designs, "MOST_ENTRIES", 3)

    with pytest.raises(UserError, match=r"sharding: a table of 4 entries against at most 3: the graph is too wide"):
        least_labels(problem)
