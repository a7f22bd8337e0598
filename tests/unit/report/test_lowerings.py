"""What operators are lowered to: those alike together, and as a sentence."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.audit.reports import audit_lowerings
from dfcompile.driver import Exploration, explore
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.operator_figures import NO_CHOICE, Lowered, LoweringSummary, lowered_texts
from dfcompile.report.screen import screen_lines
from dfcompile.report.summary import summarize
from tests.asked_options import asked
from tests.onnx_text import model_from_text


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("models") / "network.onnx"
    text = "g (float[1,2,6,6] x) => (float[1,2,2,2] z) { a = Conv(x, w) r = Relu(a) b = Conv(r, w) z = Softmax(b) }"
    onnx.save(model_from_text(text, w=np.ones((2, 2, 3, 3), np.float32)), file)
    return file


def explored(model: Path, pes: tuple[int, ...], *expand: str) -> Exploration:
    """Lower a model; how its tasks are scheduled makes no difference to names of lowerings."""
    return explore(asked(model, pes, *expand, partition="sb-lts"))


@pytest.fixture(scope="module")
def published(network: Path) -> Exploration:
    return explored(network, (4,), "published")


def test_operators_with_the_same_expansions_stand_together(network: Path) -> None:
    exploration = explored(network, (4,), "published", "Conv_0:Conv=direct")
    (result,) = summarize(exploration).results
    (point,) = exploration.points
    groups = {group.operators: dict(group.expansions) for group in result.lowerings}
    work = [group.work_cycles for group in result.lowerings]

    assert groups == {
        ("Conv_1",): {"Conv": "im2col", "MatMul": "mv"},
        ("Conv_0",): {"Conv": "direct", "Convolution": "filters"},
        ("Softmax_0",): {"Reduce": "map"},
    }
    assert work == sorted(work, reverse=True)
    assert sum(work) < result.schedule.total_work_cycles  # that of the Relu offers no choice
    assert dict(result.expansions) == {
        "Conv": "direct+im2col",
        "Convolution": "filters",
        "MatMul": "mv",
        "Reduce": "map",
    }
    audit_lowerings("lowerings", result.lowerings, point.variant)


def test_the_audit_refuses_wrong_groups(published: Exploration) -> None:
    (result,), (point,) = summarize(published).results, published.points
    first, *others = result.lowerings
    for wrong, message in (
        (replace(first, work_cycles=first.work_cycles + 1), "work_cycles"),
        (replace(first, expansions={"Conv": "direct"}), "not chosen"),
    ):
        with pytest.raises(VerificationError, match=message):
            audit_lowerings("lowerings", (wrong, *others), point.variant)
    with pytest.raises(VerificationError, match="other groups"):
        audit_lowerings("lowerings", (first, first), point.variant)


def test_one_lowering_has_one_name_whoever_chose_it(network: Path) -> None:
    (by_type,) = summarize(explored(network, (4,), "published", "Conv=direct")).results
    (by_name,) = summarize(explored(network, (4,), "published", "Conv_0:Conv=direct", "Conv_1:Conv=direct")).results
    (default,) = summarize(explored(network, (4,), "published", "Conv=direct", "Reduce=map")).results

    assert dict(by_type.expansions) == dict(by_name.expansions) == dict(default.expansions)
    assert dict(by_type.expansions) == {"Conv": "direct", "Convolution": "filters", "Reduce": "map"}


def test_operators_that_are_compared_alone_are_named_alone(network: Path) -> None:
    direct, im2col = summarize(explored(network, (4,), "Conv_0:Conv=direct,im2col")).results

    assert (direct.expansions["Conv_0:Conv"], im2col.expansions["Conv_0:Conv"]) == ("direct", "im2col")
    assert direct.expansions["Conv"] == "im2col"  # of the other


def test_the_first_screen_says_the_lowering_of_numbers_of_elements_that_are_lowered_alike_once(network: Path) -> None:
    text = " ".join(screen_lines(summarize(explored(network, (2, 4), "Conv=direct")), 100))

    assert text.count("lowering on") == 1
    assert "lowering on 2 and 4 PEs: Conv=direct Convolution=filters in Conv_0 and Conv_1 (" in text
    assert "Reduce=map in Softmax_0 (" in text


def test_a_sentence_has_the_groups_that_matter() -> None:
    small = Lowered(("s",), {"Reduce": "map"}, 0.004)
    told = list(
        lowered_texts(
            (
                Lowered(("a", "b", "c"), {"Conv": "winograd4", "MatMul": "mv"}, 0.7),
                Lowered(("d", "e"), {"Conv": "direct"}, 0.2),
                small,
                small,
            )
        )
    )

    assert told == [
        "Conv=winograd4 MatMul=mv in a and 2 more (70 % of the work); 4 other operators (21 %)",
        (
            "Conv=winograd4 MatMul=mv in a and 2 more (70 % of the work); Conv=direct in d and e (20 %); "
            "2 other operators (1 %)"
        ),
    ]
    assert list(lowered_texts((small,))) == ["Reduce=map in s (<1 % of the work)"]
    assert list(lowered_texts(())) == [NO_CHOICE]


def test_where_nothing_offers_a_choice_that_is_said(tmp_path: Path) -> None:
    onnx.save(model_from_text("g (float[4] x) => (float[4] y) { y = Relu(x) }"), file := tmp_path / "relu.onnx")
    lines = screen_lines(summarize(explored(file, (1, 2), "published")), 100)

    assert f"lowering on 1 and 2 PEs: {NO_CHOICE}" in lines


def test_a_screen_has_another_line_where_much_of_the_work_would_be_left_out(published: Exploration) -> None:
    report = summarize(published)
    (result,) = report.results
    work, names = result.schedule.total_work_cycles, [f"an_operator_with_a_long_name_{at}" for at in range(4)]

    def lines(*shares: int) -> list[str]:
        groups = tuple(
            LoweringSummary((name,), {"Conv": f"e{at}"}, work * share // 100)
            for at, (name, share) in enumerate(zip(names, shares, strict=False))
        )
        return screen_lines(replace(report, results=(replace(result, lowerings=groups),)), 80)

    few, much = lines(60, 30, 7), lines(60, 20, 15)
    assert "1 other operator (7 %)" in " ".join(few)
    assert names[2] in " ".join(much)
    assert len(much) == len(few) + 1
