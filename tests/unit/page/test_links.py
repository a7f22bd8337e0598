"""Links of a page to files beside it: relative, never a scheme, with a word on how each is opened."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from dfcompile.page.document import Content, html_page
from dfcompile.page.provenance import Provenance, links_of
from tests.unit.page.reports import HOSTILE, model_report

RUN = Provenance("dfcompile model.py --pes 16", (("dfcompile", "0.1.0"),), ())


def test_addresses_are_relative_to_the_page(tmp_path: Path) -> None:
    page = tmp_path / "pages" / "lenet.html"
    files = (tmp_path / "pages" / "out" / "lenet-16.trace.json", tmp_path / "trace 1.json", tmp_path / "x" / "m.onnx")

    assert [(link.name, link.address) for link in links_of(files, page)] == [
        ("out/lenet-16.trace.json", "./out/lenet-16.trace.json"),
        ("../trace 1.json", "./../trace%201.json"),
        ("../x/m.onnx", "./../x/m.onnx"),
    ]
    assert [link.opened_with.partition(" ")[0] for link in links_of(files, page)] == ["Perfetto", "any", "Netron"]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.isprintable() and "/" not in name])
def test_a_hostile_name_of_a_file_is_an_address_and_no_more(name: str, tmp_path: Path) -> None:
    (link,) = links_of((tmp_path / name,), tmp_path / "page.html")

    text = html_page(Content(model_report(), RUN, links=[link]))
    (address,) = re.findall(r'<a href="([^"]*)">', text)
    assert unquote(unescape(address)) == f"./{name}"
    assert unescape(re.findall(r"<a href[^>]*>(.*?)</a>", text)[0]) == name
