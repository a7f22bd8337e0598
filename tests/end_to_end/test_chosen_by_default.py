"""Where no expansion is named, expansions and tasks are chosen; what is named is kept, and the report says so."""

import html
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import dfcompile as df
from dfcompile import choosing, study
from dfcompile.choosing.automatic import AutomaticChoice
from dfcompile.choosing.scoring import Limits
from dfcompile.cli import main as cli
from dfcompile.options import Effort
from dfcompile.page.records import read_report
from dfcompile.records import replace
from dfcompile.report.figures import Report, VerificationSummary
from dfcompile.report.operator_figures import AutomaticSummary
from dfcompile.report.screen import verification_notes
from dfcompile.report.tables import section_notes
from tests.onnx_text import model_from_text

Capture = pytest.CaptureFixture[str]

PUBLISHED = ("--expand", "published")


@pytest.fixture(autouse=True)
def _in_folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products whose parallelism is in different loops, and what is between them."""
    text = "two (float[1,60] x) => (float[1,4] z) { y = MatMul(x, v) r = Relu(y) z = MatMul(r, w) }"
    onnx.save(
        model_from_text(text, v=np.ones((60, 90), np.float32), w=np.ones((90, 4), np.float32)), tmp_path / "m.onnx"
    )
    monkeypatch.chdir(tmp_path)


def report(*options: str) -> Report:
    """Return the report on 8 processing elements with options as the command line has them."""
    named: dict[str, str | list[str]] = {}
    for name, value in zip(options[::2], options[1::2], strict=True):
        key = name.removeprefix("--")
        named[key] = [*named.get(key, []), value] if key in ("expand", "granularity") else value
    return df.compile("m.onnx", pes=8, **named).report


def chosen(found: Report) -> AutomaticSummary:
    automatic = found.results[0].automatic
    assert automatic is not None
    assert automatic.is_taken
    return automatic


def printed(capsys: Capture, *words: str) -> str:
    assert cli.main(["m.onnx", "--pes", "16", *words]) == 0
    return re.sub(r'"solver_s": [\d.e-]+', "", capsys.readouterr().out)


def makespans(found: Report) -> Sequence[int | None]:
    return [result.schedule.makespan_cycles for result in found.results]


def test_without_a_word_it_is_as_with_quick(capsys: Capture) -> None:
    assert printed(capsys, "--format", "json") == printed(capsys, "--format", "json", "--expand", "quick")


@pytest.mark.parametrize("expand", [(), ("--expand", "MatMul=ip,mv", "--expand", "quick")])
def test_quick_schedules_fewer_rivals_than_auto(monkeypatch: pytest.MonkeyPatch, expand: Sequence[str]) -> None:
    monkeypatch.setattr(choosing, "QUICK", Limits(0, 500))
    thorough = tuple("auto" if word == "quick" else word for word in expand) or ("--expand", "auto")

    quick, auto = report(*expand), report(*thorough)
    few, many = chosen(quick).rivals, chosen(auto).rivals

    assert few is not None
    assert many is not None
    assert few.scheduled <= many.scheduled
    assert few.estimated > many.estimated == 0
    assert few.is_quick
    assert not many.is_quick
    assert makespans(auto)[0] <= makespans(quick)[0]  # type: ignore[operator]  # both end
    assert any("(more: --expand auto)" in note for note in section_notes(quick, "operators"))
    assert not any("(more:" in note for note in section_notes(auto, "operators"))


def test_what_is_chosen_by_estimates_alone_is_chosen_for_the_makespan(tmp_path: Path) -> None:
    """Estimates know nothing of bytes: for another objective choices are compared, whatever is named."""
    text = "two (float[1,6] x) => (float[1,4] z) { y = MatMul(x, v) r = Relu(y) z = MatMul(r, w) }"
    onnx.save(model_from_text(text, v=np.ones((6, 9), np.float32), w=np.ones((9, 4), np.float32)), tmp_path / "m.onnx")

    for objective in ("io", "energy"):
        words = ("--objective", objective)
        assert chosen(report(*words)) == chosen(report(*words, "--expand", "auto"))


def test_published_is_what_rules_leave_open() -> None:
    published, rules = report(*PUBLISHED), report("--expand", "MatMul=mv")

    assert published.results[0].expansions["MatMul"] == "mv"
    assert makespans(published) == makespans(rules)
    assert published.results[0].schedule.tasks == rules.results[0].schedule.tasks
    assert makespans(report())[0] < makespans(published)[0]  # type: ignore[operator]  # both end


def test_beside_auto_rules_limit_what_is_chosen_from() -> None:
    found = report("--expand", "auto", "--expand", "MatMul=lmv,op")

    assert {rule.rpartition("=")[2] for rule in chosen(found).expand} <= {"lmv", "op"}


def test_text_says_what_was_chosen_and_how_to_get_the_published_lowering(capsys: Capture) -> None:
    table, published, rules = (
        " ".join(printed(capsys, "--show", "operators", *words).split())
        for words in ((), PUBLISHED, ("--expand", "MatMul=mv"))
    )

    assert "--expand published takes the published ones" in table
    assert re.search(
        r"chosen on 16 PEs: --expand MatMul=[^ ]+ .*; as published it would take about [\d,]+ cycles", table
    )
    assert "hint on 16 PEs: --expand auto" not in table
    for other in (published, rules):
        assert "--expand published takes" not in other
        assert "hint on 16 PEs: --expand auto may take" in other


def test_assumptions_say_which(capsys: Capture) -> None:
    assert " expansions that are not named: chosen per number of PEs, time first — --expand" in printed(capsys, "-v")
    assert " expansions that are not named: published — --expand" in printed(capsys, "-v", *PUBLISHED)


def test_the_values_of_the_report_give_the_same_again() -> None:
    found = report()
    automatic = chosen(found)

    again = df.compile("m.onnx", pes=8, expand=automatic.expand, granularity=automatic.granularity).report
    assert makespans(again) == makespans(found)
    assert again.results[0].schedule.tasks == found.results[0].schedule.tasks


def test_a_model_without_a_choice_of_expansions_is_repeated_by_name(tmp_path: Path) -> None:
    onnx.save(model_from_text("relu (float[32] x) => (float[32] z) { z = Relu(x) }"), tmp_path / "m.onnx")

    assert chosen(report()).expand == ("published",)


@pytest.mark.parametrize("every", [(), ("--granularity", "pieces=4")])
def test_granularity_that_is_named_is_kept(every: tuple[str, ...]) -> None:
    found = report(*every, "--granularity", "MatMul_1:pieces=3")
    automatic = chosen(found)

    assert "MatMul_1:pieces=3" in automatic.granularity
    for option in automatic.options:
        assert (option.pieces == 3) == (option.operators == ("MatMul_1",))
    others = {option.pieces for option in automatic.options if option.operators != ("MatMul_1",)}
    assert others == {4} if every else others > {None, 8, 32}  # and what fills the elements


def test_the_rest_of_an_operator_is_kept_and_chosen_words_with_it_give_the_same_again(tmp_path: Path) -> None:
    text = "conv (float[1,8,12,12] x) => (float[1,8,12,12] z) { z = Conv<pads=[1,1,1,1]>(x, w) }"
    onnx.save(model_from_text(text, w=np.ones((8, 8, 3, 3), np.float32)), tmp_path / "m.onnx")

    found = report("--granularity", "Conv_0:pieces=64,rest=4", "--expand", "auto")
    automatic = chosen(found)
    assert automatic.granularity[1:] == ("Conv_0:pieces=64,rest=4",)
    assert {(option.pieces, option.rest) for option in automatic.options} == {(64, 4)}

    again = df.compile("m.onnx", pes=8, expand=automatic.expand, granularity=automatic.granularity).report
    assert again.results[0].schedule.tasks == found.results[0].schedule.tasks
    whole = df.compile("m.onnx", pes=8, expand=automatic.expand, granularity="Conv_0:pieces=64").report
    assert again.results[0].schedule.tasks < whole.results[0].schedule.tasks


def test_operators_of_one_shape_are_told_apart_where_pieces_of_one_are_named(tmp_path: Path) -> None:
    text = "same (float[1,8] x) => (float[1,8] z) { y = MatMul(x, v) z = MatMul(y, v) }"
    onnx.save(model_from_text(text, v=np.ones((8, 8), np.float32)), tmp_path / "m.onnx")

    found = chosen(report("--granularity", "MatMul_1:pieces=3"))
    assert {option.operators: option.pieces == 3 for option in found.options} == {
        ("MatMul_0",): False,
        ("MatMul_1",): True,
    }


def test_more_tasks_than_there_may_be_are_refused_as_those_of_the_published_lowering(
    capsys: Capture, tmp_path: Path
) -> None:
    text = "big (float[5000,5000] x) => (float[5000,5000] z) { a = Relu(x) b = Neg(a) z = Relu(b) }"
    onnx.save(model_from_text(text), tmp_path / "m.onnx")
    said = []
    for words in (PUBLISHED, ()):
        assert cli.main(["m.onnx", "--pes", "4", "--granularity", "pieces=9000000", *words]) == 1
        said.append(capsys.readouterr().err)

    assert said[0] == said[1]
    assert "against at most 10000000" in said[0]


def test_objective_is_about_what_is_chosen(capsys: Capture) -> None:
    by_io, by_makespan = report("--objective", "io"), report()

    assert by_io.results[0].schedule.io_bytes <= by_makespan.results[0].schedule.io_bytes
    for words in (PUBLISHED, ("--expand", "MatMul=mv")):
        assert cli.main(["m.onnx", "--pes", "8", "--objective", "io", *words]) == 1
        assert "beside rules or published, without --expand auto" in capsys.readouterr().err


def test_each_number_of_elements_has_its_own_row_and_its_own_folder(capsys: Capture, tmp_path: Path) -> None:
    assert cli.main(["m.onnx", "--pes", "2,64", "--emit", "canonical", "out"]) == 0
    text = capsys.readouterr().out

    assert "least makespan of its number of PEs" not in text  # nothing is compared
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["2", "64"]


def test_the_lowering_of_each_number_of_elements_is_verified_by_itself() -> None:
    found = df.compile("m.onnx", pes=[2, 64]).report
    errors = zip(found.results, (1e-7, 2e-7), strict=True)
    results = tuple(replace(result, verification=VerificationSummary(error, error, None)) for result, error in errors)

    notes = list(verification_notes(replace(found, results=results)))
    assert [note[:32] for note in notes] == ["verified on 2 PEs: error 1e-07 a", "verified on 64 PEs: error 2e-07 "]


def test_one_schedule_is_drawn_of_several_expansions_that_are_chosen_from(tmp_path: Path) -> None:
    assert cli.main(["m.onnx", "--pes", "8", "--expand", "auto", "--expand", "MatMul=mv,op", "--gantt", "g.svg"]) == 0
    assert (tmp_path / "g.svg").is_file()


def test_a_page_names_the_choice_in_its_command(capsys: Capture, tmp_path: Path) -> None:
    printed(capsys, "--html", "page.html")
    text = html.unescape((tmp_path / "page.html").read_text())
    command = re.search(r'id="command">dfcompile ([^<]*)<', text)

    assert command is not None
    assert command[1] == "m.onnx --pes 16 --html page.html --expand quick"
    assert "<code>--pes 16 --expand MatMul=" in text
    assert "Expansions and tasks were chosen for 16 PEs; published ones would take about" in text
    (held,) = read_report(tmp_path / "page.html").parts("results")
    assert cli.main(shlex.split(command[1])) == 0
    capsys.readouterr()
    (again,) = read_report(tmp_path / "page.html").parts("results")
    assert [again.at(part) for part in ("schedule", "automatic")] == [
        held.at(part) for part in ("schedule", "automatic")
    ]


def test_published_and_chosen_are_compared_number_by_number(capsys: Capture) -> None:
    for name, words in (("a.json", PUBLISHED), ("b.json", ())):
        assert cli.main(["m.onnx", "--pes", "2,64", *words, "--format", "json", "-o", name]) == 0
    assert cli.main(["compare", "a.json", "b.json", "--format", "json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]

    makespan = {
        change["where"] for change in changes if change["figure"] == "makespan_cycles" and change["is_headline"]
    }
    assert {re.findall(r"pes=(\d+)", where)[0] for where in makespan} == {"2", "64"}


def test_every_number_of_elements_is_a_mark_of_one_series(capsys: Capture, tmp_path: Path) -> None:
    assert cli.main(["m.onnx", "--pes", "2,4,16,64", "--html", "page.html"]) == 0
    capsys.readouterr()
    text = (tmp_path / "page.html").read_text()
    charts = json.loads(text.partition('id="charts">')[2].partition("</script>")[0])["charts"]

    marks = next(chart["marks"] for chart in charts if chart["title"].startswith("Makespan"))
    assert (len(marks["x"]), len(set(marks["series"]))) == (4, 1)


def test_high_effort_is_made_for_the_choice_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(model_from_text("relu (float[8] x) => (float[8] z) { y = Relu(x) z = Neg(y) }"), tmp_path / "m.onnx")
    compared = []
    on = AutomaticChoice.on

    def noted(self: AutomaticChoice, options, *others):  # type: ignore[no-untyped-def]  # as `on`
        compared.append(options.effort)
        return on(self, options, *others)

    monkeypatch.setattr(AutomaticChoice, "on", noted)
    found, quick = report("--effort", "high"), report()

    assert compared == [Effort.DEFAULT, Effort.QUICK]
    assert makespans(found)[0] <= makespans(quick)[0]  # type: ignore[operator]  # both end


def test_a_large_model_with_passes_is_chosen_for_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--passes", "fuse-maps")
    small = report(*words)
    monkeypatch.setattr(study, "_LOWERED_SCOPES", 0)
    large = report(*words)

    assert chosen(large).is_taken
    names = [[assumption.name for assumption in found.assumptions] for found in (small, large)]
    assert ["expansions were chosen" in each for each in names] == [False, True]


def test_a_run_and_an_exploration_are_not_told_to_choose(capsys: Capture) -> None:
    with pytest.raises(df.UserError, match="--expand: 1 combinations, auto or quick against one expansion of each"):
        df.run("m.onnx", expand=["auto"])
    with pytest.raises(df.UserError, match="input 'x': no value"):  # found after the model is lowered
        df.run("m.onnx", {})
    assert cli.main(["explore", "m.onnx", "--pes", "4", "--on-chip-memory", "8", "--expand", "auto"]) == 1
    assert "--expand: found auto, against rules alone" in capsys.readouterr().err
