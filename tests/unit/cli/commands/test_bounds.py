"""``dfcompile bounds``: what it prints, and what it refuses in one line."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import onnx
import onnx.parser
import pytest

from dfcompile.cli import main as cli

Capture = pytest.CaptureFixture[str]


def test_a_product_has_a_row_per_buffer(capsys: Capture) -> None:
    words = "bounds --gemm 64,64,64 --buffer 1KiB,64KiB --format json --within 2"
    assert cli.main(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    small, large = found["operators"]

    assert small["proved_bytes"] <= small["tiling_bytes"]
    assert large["tiling_bytes"] == large["compulsory_bytes"] == 3 * 64 * 64 * 4
    assert large["operations"] == 2 * 64**3
    assert small["within_buffer_bytes"] <= small["effectual_buffer_bytes"] == (64 * 64 + 64 + 64) * 4
    assert found["curves"][0]["traffic_bytes"][-1] == 3 * 64 * 64 * 4


def test_heads_may_share_an_operand(capsys: Capture) -> None:
    figures = []
    for form in ("8,16,16,16", "8,16,16,16,groups=2", "8,16,16,16,shared"):
        assert cli.main(["bounds", "--bmm", form, "--buffer", "1MiB", "--word", "2", "--format", "csv"]) == 0
        (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
        figures.append(int(row["tiling_bytes"]))
    own, shared = 8 * 256 * 2, 256 * 2

    assert figures == [3 * own, 2 * own + 2 * shared, 2 * own + shared]


def test_a_convolution_does_not_move_its_padding(capsys: Capture) -> None:
    assert cli.main(["bounds", "--conv", "4,8,7x7,3x3,pad=1", "--buffer", "1MiB", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["operators"]

    assert row["tiling_bytes"] == row["proved_bytes"] == 4 * (4 * 49 + 4 * 8 * 9 + 8 * 49)


def test_slopes_are_drawn_with_the_srams_mark(capsys: Capture, tmp_path: Path) -> None:
    picture = tmp_path / "slopes.svg"
    assert cli.main(["bounds", "--gemm", "256,256,256", "--system", "sn30", "--svg", str(picture)]) == 0
    text = picture.read_text()

    assert ET.fromstring(text).tag.endswith("svg")  # our own
    assert "SRAM 640 MiB" in text
    assert "maximal effectual buffer" in text
    assert "of SRAM" in capsys.readouterr().out


def test_chains_have_a_row_per_way_and_buffer(capsys: Capture) -> None:
    words = "bounds --chain 64,32,128,32 --buffer 256B,1MiB --word 2 --within 1.5 --format"
    assert cli.main([*words.split(), "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    moved = {(row["type"], row["buffer_bytes"]): row["tiling_bytes"] for row in found["fusions"]}
    once = 2 * (2 * 64 * 32 + 2 * 32 * 128)

    assert [name for name, size in moved if size == 256] == [
        "unfused", "untiled", "relax_io", "relax_io_kn", "flash", "segmented",
    ]  # fmt: skip
    assert moved["unfused", 2**20] == once + 2 * (2 * 64 * 128)
    assert {moved[name, 2**20] for name, _ in moved if name != "unfused"} == {once}
    assert moved["relax_io", 256] is None
    assert moved["segmented", 256] == min(value for (_, size), value in moved.items() if size == 256 and value)
    assert all(row["proved_bytes"] <= (row["tiling_bytes"] or row["proved_bytes"]) for row in found["fusions"])
    assert [curve["name"] for curve in found["curves"]] == list(dict.fromkeys(name for name, _ in moved))
    assert {row["operator"] for row in found["operators"]} == {"layer 1", "layer 2"}

    assert cli.main([*words.split(), "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == len(found["fusions"]) + len(found["operators"])
    assert rows[0]["type"] == "unfused"


def test_attention_may_have_heads_that_share_keys(capsys: Capture) -> None:
    words = "bounds --attention 8,64,32,16,value=8,groups=2 --buffer 1MiB --format json"
    assert cli.main(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    moved = {row["type"]: row["tiling_bytes"] for row in found["fusions"]}
    once = 4 * (8 * 64 * (16 + 8) + 2 * 32 * (16 + 8))

    assert moved == {"unfused": once + 4 * 4 * 8 * 64 * 32, "untiled": once, "flash": once}
    assert [row["operator"] for row in found["operators"]] == ["QK", "softmax", "PV"]
    assert found["operations"] == 2 * 8 * 64 * 32 * (16 + 8)


def test_a_die_is_divided_between_memory_and_compute(capsys: Capture) -> None:
    words = "bounds --gemm 4096,4096,4096 --system sn30 --buffer 1MiB --format json"
    assert cli.main(words.split()) == 0
    die = json.loads(capsys.readouterr().out)["die"]

    assert die["area_pes"] == 655360 / 2 + 1280 * 32 * 6
    assert die["area_pes"] == pytest.approx(die["buffer_bytes"] / 2048 + die["multiply_adders"])
    assert die["memory_share"] < die["sram_share"] == pytest.approx(0.571428571)


def test_a_model_has_a_curve_of_plans_where_it_is_drawn(capsys: Capture, tmp_path: Path) -> None:
    picture, target = tmp_path / "slopes.svg", tmp_path / "bounds.json"
    model = tmp_path / "m.onnx"
    graph = "agraph (float[4,8] x, float[8,8] w) => (float[4,8] z) { y = MatMul(x, w) z = Softmax(y) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> {graph}'), model)
    words = ["bounds", str(model), "--buffer", "1KiB", "--svg", str(picture), "--format", "json", "-o", str(target)]
    assert cli.main(words) == 0
    found = json.loads(target.read_text())
    alone, held = found["curves"]

    assert (alone["traffic_bytes"][-1], held["traffic_bytes"][-1]) == (4 * (64 + 4 * 32), 4 * (64 + 2 * 32))
    assert found["whole"][0]["proved_bytes"] >= found["whole"][0]["compulsory_bytes"] == 4 * (64 + 2 * 32)
    assert "m, with tensors held: maximal effectual buffer" in picture.read_text()
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--gemm 0,1,1", "--gemm: found 0 against a size from 1 to 2^63 - 1"),
        ("--gemm -4,1,1", "--gemm: found -4 against a size"),
        ("--gemm 9223372036854775808,1,1", "found 9223372036854775808 against a size"),
        ("--gemm 4000000000,4000000000,4000000000", "words of traffic against"),
        ("--gemm 99999937,99999929,3", "tilings against"),
        ("--gemm 1,2", "found 2 sizes against M,K,N"),
        ("--gemm a,b,c", "found 'a' against a number"),
        ("--gemm 4,4,4 --buffer 11", "found 11 bytes against at least 3 words of 4 bytes"),
        ("--gemm 4,4,4 --buffer 0", "found '0' against 1 to less than 2^63 bytes"),
        ("--gemm 4,4,4 --buffer -8KiB", "found '-8KiB' against 1 to less than 2^63 bytes"),
        ("--gemm 4,4,4 --buffer 9007199254740993KiB", "to less than 2^63 bytes"),
        ("--gemm 4,4,4 --buffer 8XB", "found unit 'XB'"),
        ("--gemm 4,4,4 --buffer 1KiB,1024", "given twice against once"),
        ("--gemm 4,4,4 --word 0", "--word: found '0' against 1 to 16 bytes"),
        ("--gemm 4,4,4 --within 0.5", "--within: found '0.5' against a number of 1 or more"),
        ("--gemm 4,4,4 --tiles square", "--tiles 'square': unknown"),
        ("--gemm 4,4,4 --format xml", "--format 'xml': unknown"),
        ("--bmm 8,4,4,4,groups=3", "8 heads against a multiple of 3 groups"),
        ("--bmm 8,4,4,4,own", "against H,M,K,N or"),
        ("--conv 4,4,8x8", "against C,K,PxQ,RxS"),
        ("--conv 4,4,8x8,3", "2 axes of the result against 1 of the window"),
        ("--conv 4,4,8x8,3x3,step=2", "found 'step=2' against"),
        ("--conv 4,4,8x8,3x3,pad=9", "found pad=9 against less than half"),
        ("--conv 4,6,8x8,3x3,groups=4", "against multiples of 4"),
        ("--chain 4,4", "--chain: found '4,4' against M,W0,W1"),
        ("--chain 4,4,0", "--chain: found 0 against a size from 1"),
        ("--chain 4,4,4,x", "--chain: found 'x' against a number"),
        ("--chain 4,4,4,4,4,4,4,4,4,4,4", "chain: found 9 layers against 1 to 8"),
        ("--chain 4000000000,4000000000,4000000000", "words of traffic against"),
        ("--attention 8,4,4", "--attention: found '8,4,4' against H,M,N,D"),
        ("--attention 8,4,4,-1", "--attention: found -1 against a size from 1"),
        ("--attention 8,4,4,4,groups=3", "--attention: found 8 heads against a multiple of 3 groups"),
        ("--attention 8,4,4,4,group=2", "--attention: found 'group=2' against H,M,N,D[,value=V,groups=G]"),
        ("--attention 8,4000000000,4000000000,4000000000", "words of traffic against"),
        ("m.onnx --gemm 4,4,4", "bounds: found MODEL and --gemm against MODEL, or one or more of --gemm, --bmm"),
        ("--gemm 4,4,4 --gemm 4,4,4", "--gemm: 4,4,4 is given twice"),
        ("--gemm 4,4,4 --cloud", "--cloud: found without --svg FILE"),
        ("--gemm 4,4,4 --intensity", "--intensity: found without --svg FILE"),
        ("--gemm 4,4,4 --effectual", "--effectual: found without --svg FILE"),
        ("--gemm 4,4,4 --effectual --cloud --svg /dev/null", "--effectual: found beside --cloud"),
        ("", "found nothing against MODEL, or one or more of"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(words: str, said: str, capsys: Capture) -> None:
    assert cli.main(["bounds", *words.split()]) == 1
    error = capsys.readouterr().err

    assert said in error
    assert error.count("\n") == 1
