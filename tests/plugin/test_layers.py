"""The front end of this package, checked with what dfcompile offers to every plug-in."""

import json
from pathlib import Path

import pytest
from mylab.layers import LAYERS, read_layers

from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions
from dfcompile.testing import check_front_end

NETWORK = {
    "inputs": 3,
    "layers": [
        {"weights": [[1.0, -2.0], [0.5, 0.25], [-1.0, 3.0]], "activation": "Relu"},
        {"weights": [[2.0], [-0.5]], "activation": "Tanh"},
    ],
}


def test_two_layers_become_a_model_that_can_be_run(tmp_path: Path) -> None:
    path = tmp_path / "net.layers"
    path.write_text(json.dumps(NETWORK))

    dag = check_front_end(LAYERS, path)

    assert {kernel.origin for kernel in dag.kernels} == {"layer0", "activation0", "layer1", "activation1"}


def test_layers_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = tmp_path / "net.layers"
    path.write_text(json.dumps({**NETWORK, "inputs": 4}))

    with pytest.raises(UserError, match=r"net.layers: layer 0: found weights \(3, 2\) against 4 rows"):
        read_layers(path, ReadOptions())
