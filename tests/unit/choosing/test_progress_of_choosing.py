"""Whoever watches an automatic choice sees that it comes on; the choice is the same."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dfcompile.api.compile_model import compile_model
from dfcompile.host import stages

SOLVER = re.compile(r'"solver_s": [0-9.e-]+')


def model() -> onnx.ModelProto:
    """Two products with a softmax between them."""
    weights = [numpy_helper.from_array(np.ones((8, 8), np.float32), name) for name in ("v", "w")]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"], "first"),
        helper.make_node("Softmax", ["a"], ["b"], "softmax"),
        helper.make_node("MatMul", ["b", "w"], ["y"], "second"),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    return helper.make_model(
        helper.make_graph(nodes, "model", [x], [y], weights), opset_imports=[helper.make_opsetid("", 18)]
    )


def test_choosing_has_a_share_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float | None] = []
    titles: list[str] = []
    watch = stages.Watch(titles.append)
    add, is_at = stages.Work.add, stages.Work.is_at

    def noted(work: stages.Work, parts: float = 1.0) -> None:
        add(work, parts)
        if watch.title.startswith("choosing"):
            shares.append(watch.share())

    def put(work: stages.Work, done: float, note: str = "") -> None:
        is_at(work, done, note)
        if watch.title.startswith("choosing"):
            shares.append(watch.share())

    alone = compile_model(model(), pes=4, expand="auto").render("json")
    monkeypatch.setattr(stages.Work, "add", noted)
    monkeypatch.setattr(stages.Work, "is_at", put)
    with stages.watched_by(watch):
        watched = compile_model(model(), pes=4, expand="auto", show=watch.stage).render("json")

    seen = [share for share in shares if share is not None]
    assert "choosing expansions for 4 processing elements" in titles
    assert len(set(seen)) >= 10
    assert seen == sorted(seen)
    assert SOLVER.sub("", watched) == SOLVER.sub("", alone)
