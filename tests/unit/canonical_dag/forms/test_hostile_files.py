"""Files that are nearly a canonical DAG are refused in one short line, or read as what they say."""

import json

import pytest

from dfcompile.canonical_dag.forms.json_form import read_dag
from dfcompile.errors import UserError

KERNEL = {
    "name": "k", "op": "MatMul", "origin": "k", "expansion": "mv", "variant": "gemm_input1_weight",
    "outer": 1, "m": 1, "k": 1, "n": 1, "inputs": [], "outputs": [],
}  # fmt: skip
TENSOR = {"name": "t", "elements": 1, "element_bytes": 4, "role": "input"}
HUGE = 10**30


def _file(volume: object = 4, **fields: object) -> str:
    edges = [{"source": "a", "target": "b", "volume": volume}]
    return json.dumps(
        {"format": "dfcompile-dag/1", "nodes": [{"nodes": "a"}, {"nodes": "b"}], "edges": edges, **fields}
    )


REFUSED = {
    "field given twice": (_file().replace("4}", '4, "volume": 9}'), "json: field 'volume' given twice in one object"),
    "list given twice": (_file()[:-1] + ', "edges": []}', "json: field 'edges' given twice"),
    "not a number": (_file(float("nan")), "edges[0]: volume nan against a whole number"),
    "no end": (_file(float("inf")), "edges[0]: volume inf against a whole number"),
    "truth": (_file(True), "edges[0]: volume True against a whole number"),
    "thousands of digits": (_file(10**4000), f"edges[0]: volume 1{'0' * 99}… against at most {2**63 - 1}"),
    "list of thousands": (_file([4] * 5000), f"edges[0]: volume {str([4] * 5000)[:100]}… against a whole number"),
    "huge kernel": (_file(kernels=[{**KERNEL, "m": HUGE}]), f"kernels[0]: m {HUGE} against at most {2**63 - 1}"),
    "huge tensor": (_file(tensors=[{**TENSOR, "elements": HUGE}]), f"tensors[0]: elements {HUGE} against at most"),
    "negative memory": (_file(kernels=[{**KERNEL, "memory_bytes": -5}]), "kernel 'k': memory_bytes -5 against 0"),
    "input that is no name": (_file(kernels=[{**KERNEL, "inputs": [None]}]), "kernels[0]: inputs[0] None against a"),
    "order that is no text": (_file(orders=["any", ["x"]]), "file: orders[1] ['x'] against a text"),
    "half a character in the name": (_file(name="\ud800"), "file: half a character in '\\ud800' against whole ones"),
    "half a character in a node": (
        _file(nodes=[{"nodes": "a"}, {"nodes": "b"}, {"nodes": "\udfff"}]),
        "nodes[2]: half a character in '\\udfff' against whole ones",
    ),
    "half a character in quotes": (
        'dfcompile-dag/1 x\nbuffer "\\udfff"\n',
        "line 2: half a character in '\\udfff' against whole ones",
    ),
    "long name": (f"dfcompile-dag/1 x\ntask a[{'9' * 5000}]\n", f"line 2: 'a[{'9' * 98}…' against a name"),
    "digits of another script": (
        "dfcompile-dag/1 x\ntask a\ntask b\nedge a -> b volume=\u0664\n",
        "line 4: edge 'a' -> 'b': volume '\u0664' against a whole number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_file_is_refused_in_a_short_line(name: str) -> None:
    text, expected = REFUSED[name]

    with pytest.raises(UserError) as refused:
        read_dag(text)
    message = str(refused.value)
    assert message.startswith(expected)
    assert len(message) < 220
    assert message.isprintable()


@pytest.mark.parametrize("text", [_file(), "dfcompile-dag/1 dag\ntask a\ntask b\nedge a -> b volume=4\n"])
def test_mark_in_front_of_a_file_is_no_part_of_it(text: str) -> None:
    assert str(read_dag("\ufeff" + text)) == str(read_dag(text))
