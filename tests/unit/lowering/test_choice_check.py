"""Choices of expansions by type, by name and by pattern."""

import re
from pathlib import Path

import onnx
import pytest

from dfcompile.driver import explore
from dfcompile.errors import UserError
from dfcompile.lowering import addressed, registered_expansions
from dfcompile.options import Choice
from dfcompile.options.readers import parse_expand
from tests.asked_options import asked
from tests.onnx_text import model_from_text

TABLE = registered_expansions()
ORIGINS = ("layer.0.attn", "layer.1.attn", "layer.0.ff.up", "conv1", "/block/MatMul")


def read(text: str) -> Choice:
    (rule,) = parse_expand([text])
    return addressed(Choice(rule.op_type, rule.names[0], rule.origin), TABLE, ORIGINS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Conv=direct", Choice("Conv", "direct")),
        ("conv1=direct", Choice("", "direct", "conv1")),
        ("conv1:MatMul=ip", Choice("MatMul", "ip", "conv1")),
        ("layer.*.attn/MatMul=ip", Choice("MatMul", "ip", "layer.*.attn")),
        ("layer.0=ip", Choice("", "ip", "layer.0")),
        ("/block/MatMul=ip", Choice("", "ip", "/block/MatMul")),
        ("layer.?.attn:MatMul=ip", Choice("MatMul", "ip", "layer.?.attn")),
    ],
)
def test_choice_is_about_a_type_a_name_or_a_pattern(text: str, expected: Choice) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Cnv=direct", "expansion 'Cnv=direct': no operator type 'Cnv' and no operator 'Cnv' (did you mean 'Conv'?)"),
        ("conv2=direct", "expansion 'conv2=direct': no operator type 'conv2' and no operator 'conv2' (did you mean"),
        ("layers.*/MatMul=ip", "expansion 'layers.*/MatMul=ip': no operator 'layers.*' (did you mean 'layer."),
        ("up=ip", "expansion 'up=ip': no operator type 'up' and no operator 'up' (did you mean 'layer.0.ff.up'?)"),
        ("ff=ip", "expansion 'ff=ip': no operator type 'ff' and no operator 'ff' (did you mean 'layer.0.ff'?)"),
        (
            "attn/MatMul=ip",
            (
                "expansion 'attn/MatMul=ip': no operator 'attn' (did you mean 'layer.0.attn' or 'layer.1.attn'? "
                "'*.attn' is all of them)"
            ),
        ),
        ("conv9:MatMul=ip", "expansion 'conv9:MatMul=ip': no operator 'conv9' (did you mean 'conv1'?)"),
    ],
)
def test_pattern_that_fits_nothing_is_an_error_with_the_nearest_names(text: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        read(text)


def test_name_comes_before_pattern_before_type() -> None:
    by_type, by_pattern, by_name = Choice("MatMul", "a"), Choice("", "b", "layer.*"), Choice("MatMul", "c", "layer.1")

    assert [choice.fit("MatMul", "layer.1") for choice in (by_name, by_pattern, by_type)] == [0, 1, 2]
    assert [choice.fit("Conv", "layer.2.up") for choice in (by_name, by_pattern, by_type)] == [None, 1, None]


def test_operators_get_what_their_names_and_patterns_say(tmp_path: Path) -> None:
    file = tmp_path / "three.onnx"
    text = "g (float[2,2] x) => (float[2,2] z) { a = MatMul(x, x) b = MatMul(a, x) z = MatMul(b, x) }"
    model = model_from_text(text)
    for node, name in zip(model.graph.node, ("up.0", "up.1", "down"), strict=True):
        node.name = name
    onnx.save(model, file)

    found = explore(asked(file, (2,), "MatMul=op", "up.*/MatMul=lmv", "up.1=ip"))

    names = {each.origin: each.name for each in found.variants[0].lowered.chosen if each.name != "matmul"}
    assert names == {"up.0": "lmv", "up.1": "ip", "down": "op"}


def test_name_of_an_operator_without_such_an_expansion_is_an_error(tmp_path: Path) -> None:
    onnx.save(model_from_text("g (float[2] x) => (float[2] y) { y = Relu(x) }"), tmp_path / "m.onnx")

    with pytest.raises(UserError, match=r"^expansion 'Relu_0=direct': operator 'Relu_0' has no 'direct'"):
        explore(asked(tmp_path / "m.onnx", (2,), "Relu_0=direct"))


@pytest.mark.parametrize("rest", [(), ("quick",)])
def test_an_expansion_that_does_not_fit_an_operator_says_which_why_and_what_to_type(
    rest: tuple[str, ...], tmp_path: Path
) -> None:
    text = (
        "g (float[1,2,9,9] x, float[2,2,3,3] w) => (float[1,2,3,3] z) { a = Conv(x, w) z = Conv<strides=[2,2]>(a, w) }"
    )
    onnx.save(model_from_text(text), file := tmp_path / "strided.onnx")

    with pytest.raises(UserError) as refused:
        explore(asked(file, (2,), "Conv=winograd4", *rest))
    assert str(refused.value) == (
        "operator 'Conv_1': Conv=winograd4 does not fit: stride 2 and dilation 1 against 1 and 1 (add --expand "
        "Conv_1:Conv=im2col or direct or fft)"
    )
    explore(asked(file, (2,), "Conv=winograd4", "Conv_1:Conv=im2col", *rest))


def test_several_operators_that_do_not_fit_are_named_together(tmp_path: Path) -> None:
    text = (
        "g (float[1,2,9,9] x, float[2,2,3,3] w) => (float[1,2,2,2] z) "
        "{ a = Conv<strides=[2,2]>(x, w) z = Conv<dilations=[1,1], strides=[2,2], pads=[1,1,1,1]>(a, w) }"
    )
    onnx.save(model_from_text(text), file := tmp_path / "strided.onnx")

    with pytest.raises(UserError, match=r"^2 operators do not fit the expansions named for them: operator 'Conv_0': "):
        explore(asked(file, (2,), "Conv=winograd"))
