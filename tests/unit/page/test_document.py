"""Pages: one file, a policy with a hash for each script, names as text, the report's JSON inside."""

import hashlib
import re
from base64 import b64encode
from pathlib import Path
from xml.sax.saxutils import unescape

import numpy as np
import pytest

from dfcompile.errors import UserError
from dfcompile.page.document import MOST_TASKS, Content, html_page
from dfcompile.page.provenance import Provenance, provenance_of
from dfcompile.page.records import read_report, report_in
from dfcompile.report.plain_values import Json
from dfcompile.visualization.trace import Timeline
from tests.unit.page.reports import HOSTILE, dataflow, exploration_report, model_report, operators_report

RUN = Provenance("dfcompile model.py --pes 16", (("dfcompile", "0.1.0"),), ())


def page(report: dict[str, Json], *timelines: tuple[str, Timeline]) -> str:
    return html_page(Content(report, RUN, timelines))


def tags(text: str) -> list[str]:
    """The tags of a page outside of its scripts."""
    return re.findall(r"<[a-zA-Z/!][^>]*>", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


def timeline(tasks: int) -> Timeline:
    numbers = np.arange(tasks, dtype=np.int64)
    none = np.zeros(tasks, dtype=np.int64)
    return Timeline(4, tasks, (("family", "origin"),), none, numbers, numbers % 4, numbers, numbers + 1, none)


def test_the_answer_says_the_shortest_with_its_choices_bound_io_and_cost() -> None:
    assert (
        "64 PEs with MatMul=ip take 3,750 cycles (3.75 µs), 1.0 % above the proved bound; 4.06 kB I/O; "
        "308 USD." in page(model_report())
    )


def test_every_script_and_style_stands_in_the_policy_by_its_hash() -> None:
    text = page(model_report())

    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    policy = unescape(policy, {"&#39;": "'", "&#34;": '"'})
    inline = re.findall(r"<script>(.*?)</script>|<style>(.*?)</style>", text, re.DOTALL)
    assert len(inline) == 10
    for script, style in inline:
        digest = b64encode(hashlib.sha256((script or style).encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_a_page_has_the_scripts_that_it_uses_without_comments_and_indentation() -> None:
    without = page(model_report())
    schedule = page(model_report(), ("4 PEs", timeline(8)))
    graph = html_page(Content(model_report(), RUN, graph=dataflow(1, 2, 1)))

    assert "page.timeline =" not in without
    assert "page.graph =" not in without
    assert "page.timeline =" in schedule
    assert "page.graph =" in graph
    assert not re.findall(
        r"^(?: +|//)", graph.partition("window.dfcompile = {}")[2].partition("</body>")[0], re.MULTILINE
    )


def test_the_schedule_stands_beside_where_the_cycles_go_under_one_legend() -> None:
    text = page(operators_report(12), ("64 PEs", timeline(8)))
    section = text.partition('<section aria-labelledby="where-heading">')[2].partition("</section>")[0]

    assert section.count("<h2") == 1
    places = [section.index(each) for each in ('id="operators"', 'id="timeline"', "Where the cycles of the PEs go")]
    assert places == sorted(places)


def test_operators_of_a_schedule_alone_have_colours_by_their_work() -> None:
    none = np.zeros(3, dtype=np.int64)
    ends = np.array([3, 4, 9], dtype=np.int64)
    families = (("a", "small"), ("b", "small"), ("c", "large"))
    tasks = Timeline(4, 9, families, np.arange(3), none - 1, none, none, ends, none)
    report: dict[str, Json] = {"format": "dfcompile-report/4", "results": [{"pes": 4, "makespan_cycles": 9}]}

    assert '"operators":["large","small"]' in page(report, ("4 PEs", tasks))
    assert '"operators":["conv0","conv1"]' in html_page(Content(report, RUN, graph=dataflow(1, 2, 1)))


def test_the_json_of_a_page_is_the_report() -> None:
    for report in (model_report(HOSTILE[0], HOSTILE[5]), exploration_report(3)):
        assert report_in(page(report), "page.html").values == report


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text_wherever_it_stands(name: str) -> None:
    text = page(model_report(name, name))

    assert len(tags(text)) == len(tags(page(model_report("name", "name"))))
    outside = re.sub(r"<(script|style)[ >].*?</\1>", "", text, flags=re.DOTALL)
    assert not set("\u202e\u2066\u200b\x00\x1b\x9b\ud800") & set(outside)


def test_a_page_is_about_what_people_call_the_model_and_its_json_is_as_it_was() -> None:
    report = model_report("model")

    text = html_page(Content(report, RUN, graph=dataflow(1, 2, 1), subject="lenet"))
    assert "<title>lenet · dfcompile</title>" in text
    assert "How long does lenet take on 16, 64 processing elements (PEs)" in text
    assert "Dataflow graph: lenet<" in text
    assert report_in(text, "page.html").values == report
    exploration = {**exploration_report(2), "model": "model"}
    assert "<title>lenet · dfcompile</title>" in html_page(Content(exploration, RUN, subject="lenet"))


def test_a_graph_that_is_too_large_is_said_to_be_left_out() -> None:
    assert "it has 98,770 families" in html_page(Content(model_report(), RUN, families_left_out=98_770))
    assert 'id="graph-heading"' not in page(model_report())


def test_a_page_is_the_same_twice() -> None:
    assert page(model_report()) == page(model_report())


def test_timelines_that_do_not_fit_are_counted() -> None:
    large, small = timeline(MOST_TASKS - 5), timeline(10)

    text = page(model_report(), ("first", large), ("second", small), ("third", timeline(4)))

    assert "1 schedules are left out" in text
    assert len(text) < 6_000_000


def test_a_report_of_no_kind_is_refused() -> None:
    with pytest.raises(UserError, match=r"found format 'dfcompile-dag/1' against dfcompile-report, "):
        page({"format": "dfcompile-dag/1"})
    with pytest.raises(UserError, match="found no format against"):
        page({})


def test_files_without_a_report_are_refused_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "report"
    for content, message in (
        (b"<html></html>", "a page without a report"),
        (b"{", "found no JSON"),
        (b"[]", "found a JSON list against a report"),
        (b"\xff", "no UTF-8 text"),
    ):
        file.write_bytes(content)
        with pytest.raises(UserError, match=message):
            read_report(file)
    with pytest.raises(UserError, match="no such file"):
        read_report(tmp_path / "none")


def test_what_was_read_has_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(b"abc")

    found = provenance_of("dfcompile model.py", "1.2", (file, Path("h100-sxm")))

    assert found.inputs == ((str(file), hashlib.sha256(b"abc").hexdigest()),)
    assert found.versions[0] == ("dfcompile", "1.2")
