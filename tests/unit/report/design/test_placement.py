"""A small design with memory units, from the file to the report, the tables and the pictures of its grid."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.errors import UserError
from dfcompile.report.design.figures import design_schema
from tests.report_schemas import validate

SETUP = """
dataflow_graph {
  kernels { name: "Project" id: 1 config: -1 fwd_bwd: FWD type: SYSTOLIC
    gemm_input1_weight { outer: 1 M: 16 K: 16 N: 8 input_tensor_size: 256 weight_tensor_size: 512
                         output_tensor_size: 256 sharding: M_SHARDING tiling: N_TILING } }
  kernels { name: "Relu" id: 2 config: -1 fwd_bwd: FWD type: SIMD
    elementwise_input1 { outer: 1 M: 16 N: 8 input_tensor_size: 256 output_tensor_size: 256
                         sharding: M_SHARDING tiling: N_TILING } }
  kernels { name: "Reduce" id: 3 config: -1 fwd_bwd: FWD type: SYSTOLIC
    gemm_input1_weight { outer: 1 M: 16 K: 16 N: 8 input_tensor_size: 256 weight_tensor_size: 512
                         output_tensor_size: 256 sharding: K_SHARDING tiling: N_TILING } }
  connections { startIdx: 1 endIdx: 2 id: 1 }
  connections { startIdx: 2 endIdx: 3 id: 2 }
}
system {
  num_chip: 4
  accelerator { core: 10 systolic_width: 2 systolic_height: 2 sram_cap: 2000 pmu: 10 pmu_cap: 128 x: 5 y: 4
                freq: 1 placement: "diagonalwise" }
  r_r { x: 2 y: 2 link_bw_x: 10 link_bw_y: 10 par_x: "TP" par_y: "DP" }
  memory { dram_bw: 10 dram_cap: 100000 }
}
cost { link_unit_price: 2 switch_unit_price: 24 dram_unit_price: 1 accelerator_price: 1000 accelerator_power: 100 }
execution {
  llm { hidden_dim: 16 head_dim: 4 num_head: 4 seq_len: 8 num_layer: 2 global_batch_size: 4 micro_batch_size: 1
        num_layer_in_graph: 1 tile_size: 4 }
  execution_style: DATAFLOW num_config: 2 overlap: PERFECT_OVERLAP word: 2
}
"""


@pytest.fixture
def setup(tmp_path: Path) -> Path:
    file = tmp_path / "small.txt"
    file.write_text(SETUP)
    return file


def test_report_tables_and_pictures_have_the_placement(setup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = setup.parent / "solved"

    assert main([str(setup), "--format", "json", "-o", str(folder)]) == 0
    report = json.loads(capsys.readouterr().out)
    validate(report, design_schema)
    (placement,) = report["placements"]
    # Diagonals of 5 x 4 cells: PMU 0; PCUs 5, 1; PMUs 10, 6, 2; PCUs 15, 11, 7, 3; PMUs 16, 12, 8, 4; PCUs 17, 13, ...
    assert placement["kernels"] == [
        {"name": "Project", "lanes": 2, "stages": 2, "cells": [5, 1, 15, 11]},
        {"name": "Relu", "lanes": 1, "stages": 1, "cells": [7]},
        {"name": "Reduce", "lanes": 2, "stages": 2, "cells": [3, 17, 13, 9]},
    ]
    assert placement["tensors"] == [
        {"role": "weights", "writer": "", "reader": "Project", "cells": [0, 10]},
        {"role": "tensor", "writer": "Project", "reader": "Relu", "cells": [6]},
        {"role": "weights", "writer": "", "reader": "Reduce", "cells": [2, 16]},
        {"role": "tensor", "writer": "Relu", "reader": "Reduce", "cells": [12, 8]},
    ]
    assert placement["wires"][1] == {
        "tensor": 1,
        "kernel": 0,
        "direction": "out",
        "pmu_cells": [6, 6],
        "pcu_cells": [1, 11],
    }
    assert placement["wires"][-1] == {
        "tensor": 3,
        "kernel": 2,
        "direction": "in",
        "pmu_cells": [12, 8],
        "pcu_cells": [3, 17],
    }
    from_dram = {"direction": "in", "dimension": None}
    along_x = {"tensor": None, "kernel": 2, "dimension": 0, "cells": [17, 9]}  # ends of lanes: its sums are reduced
    assert placement["links"] == [
        {"tensor": 0, "kernel": 0, **from_dram, "border": "left", "cells": [0, 10]},
        {"tensor": 2, "kernel": 2, **from_dram, "border": "top", "cells": [2]},
        {"tensor": 2, "kernel": 2, **from_dram, "border": "bottom", "cells": [16]},
        {**along_x, "direction": "out", "border": "right"},
        {**along_x, "direction": "in", "border": "left"},
    ]
    assert (placement["pcus"], placement["pmus"]) == (9, 7)
    row = next(line for line in (folder / "report.txt").read_text().splitlines() if "diagonalwise" in line)
    assert row.split() == ["0", "9", "10", "7", "10", "16", "5", "x", "4", "diagonalwise"]
    drawing = ET.fromstring((folder / "placement-0.svg").read_text())
    titles = [title.text for title in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 9 + 7
    assert {"Relu (2, 1)", "weights of Project (0, 2)", "Relu to Reduce (2, 2)"} <= set(titles)


def test_each_configuration_has_a_placement_and_crossing_tensors_go_over_dram(
    setup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SETUP.replace('"Reduce" id: 3 config: -1', '"Reduce" id: 3 config: 1').replace("diagonalwise", "rowwise")
    setup.write_text(text.replace("id: 1 config: -1", "id: 1 config: 0").replace("id: 2 config: -1", "id: 2 config: 0"))

    assert main([str(setup), "--format", "json", "-o", str(setup.parent / "solved")]) == 0
    placements = json.loads(capsys.readouterr().out)["placements"]
    ways = []
    for placement in placements:
        number = next(number for number, one in enumerate(placement["tensors"]) if one["writer"] == "Relu")
        ways.append(next((one["direction"], one["dimension"]) for one in placement["links"] if one["tensor"] == number))
    assert [one["configuration"] for one in placements] == [0, 1]
    assert ways == [("out", None), ("in", None)]
    assert sorted(path.name for path in (setup.parent / "solved").glob("placement-*")) == [
        *("placement-0.svg", "placement-1.svg"),
    ]


def test_tensors_between_stages_go_over_the_dimension_of_the_pipeline(
    setup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup.write_text(SETUP.replace('"DP"', '"PP"').replace("num_layer_in_graph: 1", "num_layer_in_graph: 2"))

    assert main([str(setup), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["stage"] for one in report["configurations"]] == [0, 1]
    ways = [
        [(link["direction"], link["border"]) for link in one["links"] if link["dimension"] == 1]
        for one in report["placements"]
    ]
    assert ways == [[("out", "bottom")], [("in", "top")]]


def test_networks_of_three_dimensions_use_the_nearest_border(setup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = "r_r_r { x: 2 y: 1 z: 2 link_bw_x: 10 link_bw_y: 10 link_bw_z: 10"
    old = "r_r { x: 2 y: 2 link_bw_x: 10 link_bw_y: 10"
    setup.write_text(SETUP.replace(old, network).replace('par_y: "DP"', 'par_y: "PP" par_z: "DP"'))

    assert main([str(setup), "--format", "json"]) == 0
    (placement,) = json.loads(capsys.readouterr().out)["placements"]
    exchanged = [
        (link["dimension"], link["direction"], link["border"], link["cells"])
        for link in placement["links"]
        if link["dimension"] is not None
    ]
    # Cell 17 = (2, 3) is at the bottom, cell 9 = (4, 1) at the right.
    assert exchanged == [(0, way, border, cells) for way in ("out", "in") for border, cells in (
        ("right", [9]), ("bottom", [17])
    )]  # fmt: skip


def test_nothing_is_placed_where_the_file_switches_it_off(setup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setup.write_text(SETUP.replace("word: 2", "word: 2 turn_off_p_and_r: true"))

    assert main([str(setup), "--format", "json", "-o", str(setup.parent / "solved")]) == 0
    assert json.loads(capsys.readouterr().out)["placements"] == []
    assert list((setup.parent / "solved").glob("placement-*")) == []
    assert "placement" not in (setup.parent / "solved" / "report.txt").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"diagonalwise"', '"rowise"', r"placement': found 'rowise' against 'rowwise' or 'diagonalwise' \(did you"),
        ("x: 5 y: 4", "x: 5 y: 5", r"found 5 x 5 = 25 cells against 20 = 10 core \+ 10 pmu"),
        ("core: 10", "core: 11", r"found 5 x 4 = 20 cells against 21 = 11 core \+ 10 pmu"),
        ("core: 10 systolic_width: 2 systolic_height: 2 sram_cap: 2000 pmu: 10",
         "core: 11 systolic_width: 2 systolic_height: 2 sram_cap: 2000 pmu: 9",
         "found 11 and 9 against 10 and 10, the odd and even cells of a board of 5 x 4"),
    ],
)  # fmt: skip
def test_bad_grids_name_the_field(old: str, new: str, message: str) -> None:
    assert old in SETUP
    with pytest.raises(UserError, match=message):
        parse_design(SETUP.replace(old, new), "x.txt")
