"""``dfcompile llm``: its report in every format, and one line for what cannot be."""

import csv
import json
import re
from pathlib import Path

import pytest

from dfcompile.cli.main import main

DATA = Path(__file__).parents[3] / "data" / "llm"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["llm", *words]) == 0
    return capsys.readouterr().out


def test_the_table_has_every_kernel_and_says_how_it_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--prefill", "8192", "--decode", "8448x256", "-v")

    for word in ("bound", "roofline", "tiling", "counted by roofline", "lm_head", "514.1", "819.9", "assumptions"):
        assert word in text
    assert "time to first token: 514.1 ms (roofline)" in text
    assert "time per output token: 819.9 ms (roofline; prefills of other users are not counted)" in text
    assert "time per output token: prefills of other users are not counted (--chunked" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120


def test_what_a_time_per_output_token_does_not_count_stands_beside_it_in_every_form(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said, page = "prefills of other users are not counted", tmp_path / "page.html"
    words = ("--prefill", "64", "--decode", "128x4", "--html", str(page))
    report = json.loads(run(capsys, *words, "--format", "json"))

    assert [step["assumptions"] for step in report["steps"]] == [[], [said]]
    assert sum(said in note for note in report["notes"]) == 1
    assert f"; {said}." in page.read_text()
    assert said not in run(capsys, "--prefill", "64", "-v")
    swept = csv.DictReader(run(capsys, "--decode", "128x4", "--sweep", "batch=1,2", "--format", "csv").splitlines())
    assert [row["assumptions"] for row in swept] == [said, said]


def test_no_line_is_wider_than_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--config", "llama-4-maverick-17b-128e", "--decode", "64x8", "-v")

    assert max(map(len, text.splitlines())) <= 120


def test_json_has_exact_integers_and_the_same_bytes_twice(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--config", "llama-3.1-405b", "--prefill", "131072x4096", "--format", "json")
    texts = {run(capsys, *words) for _ in range(2)}
    record = json.loads(texts.pop())

    assert not texts
    pairs = 131_072 * 131_073 // 2
    assert sum(one["count"] * one["macs"] for one in record["steps"][0]["kernels"]) == record["steps"][0]["macs"]
    assert 4096 * 126 * 128 * 256 * pairs > 2**53
    assert any(one["macs"] == 4096 * 128 * 256 * pairs for one in record["steps"][0]["kernels"])


def test_csv_has_the_rows_of_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--system", "JGS", "--decode", "8448x256", "--format", "csv")
    found = list(csv.DictReader(text.splitlines()))
    reference = [
        row
        for row in csv.DictReader((DATA / "default_mode_kernels.csv").read_text().splitlines())
        if (row["arch"], row["scenario"]) == ("JGS", "decode_ctx8448_b256")
    ]

    assert [(row["name"], row["macs"]) for row in found] == [(row["name"], row["macs"]) for row in reference]
    for one, other in zip(found, reference, strict=True):
        assert float(one["time_s"]) == pytest.approx(float(other["time_s"]), rel=1e-11)


def test_every_chunk_of_a_prompt_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    (step,) = json.loads(run(capsys, "--chunked", "8192:512:256", "--format", "json"))["steps"]
    alone = [
        json.loads(run(capsys, "--chunked", f"{new}@{past}+8448x15", "--format", "json"))["steps"][0]["time_s"]
        for past, new in ((0, 241), (3856, 241))
    ]
    text = run(capsys, "--chunked", "8192:512:256")

    assert [step["chunks"][at]["time_s"] for at in (0, 16)] == alone
    assert [one["past"] for one in step["chunks"]] == list(range(0, 8192, 241))
    whole = sum(one["time_s"] for one in step["chunks"])
    assert f"time to first token in 34 chunks: {whole * 1e3:,.4g} ms, {whole / 34 * 1e3:.4g} ms each" in text
    assert "some of the chunks of a prompt" in text


def test_layers_are_mapped_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--config", "gpt2", "--system", "h100-sxm", "--decode", "64x2", "--map")
    (step,) = json.loads(run(capsys, *words, "--format", "json"))["mapped"]
    rows = list(csv.DictReader(run(capsys, *words, "--format", "csv").splitlines()))
    text = run(capsys, *words, "-v")

    layer, head = step["parts"]
    assert step["time_s"] == pytest.approx(12 * layer["time_s"] + head["time_s"])
    assert layer["least_bytes"] <= layer["memory_bytes"]
    assert layer["bound_s"] <= layer["time_s"]
    assert [row["kernels"] for row in rows if row["part"] == "head"] == ["lm_head"]
    assert f"mapped: {step['time_s'] * 1e3:,.4g} ms per step, layer after layer" in text
    assert "one layer each, mapped on h100-sxm" in text
    assert "arrays: 32 x 64 per core" in text
    assert max(map(len, text.splitlines())) <= 120
    assert main(["llm", *words, "--sweep", "batch=1", "--format", "csv"]) == 1
    assert main(["llm", *words, "--offload", "auto"]) == 1
    assert "--map: found --offload" in capsys.readouterr().err


def test_the_page_of_mapped_layers_has_their_configurations_and_how_arrays_are_split(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ("--config", "gpt2", "--system", "h100-sxm", "--decode", "64x2", "--map", "--chips", "2")
    (step,) = json.loads(run(capsys, *words, "--format", "json", "--html", str(page)))["mapped"]

    drawn = json.loads(re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page.read_text())[0])
    graph, layer = drawn["graph"], step["parts"][0]
    configurations = sum(len(part["configurations"]) for part in step["parts"])
    assert len(graph["configurations"]) == configurations
    assert graph["configurations"][0] == f"1 · {layer['part']}"
    kernels = {name for row in layer["configurations"] for name in row["kernels"].split()}
    assert kernels < set(graph["nodes"]["name"])
    assert layer["network_chips"] == [2]
    assert {one["kernel"] for one in layer["layouts"]} == kernels
    of_kernels = [chart for chart in drawn["charts"] if chart["title"].startswith("Sharding")]
    assert len(of_kernels) == sum(part["chips"] > 1 for part in step["parts"])
    assert len(of_kernels[0]["marks"]["row"]) == len(layer["layouts"])
    split = next(one for one in layer["layouts"] if one["held"] != ["whole"])
    assert split["chip_elements"] * 2 == split["elements"]


def test_a_sweep_says_what_a_change_brings(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--system", "h100-sxm", "--decode", "8448x1", "--sweep", "batch=1,4,400", "--format", "csv")
    rows = list(csv.DictReader(run(capsys, *words).splitlines()))

    assert [row["value"] for row in rows] == ["1", "4", "400"]
    assert float(rows[1]["tokens_per_s"]) > float(rows[0]["tokens_per_s"])
    assert rows[2]["degrees"] == "does not fit"


def test_calibrated_times_are_named_with_their_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--system", "a100-sxm", "--decode", "512", "--efficiency", "a100", "-v")

    assert "counted by calibrated" in text
    assert "mean 10.6 % on 17 published latencies" in " ".join(text.split())


def test_degrees_are_searched_or_given(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--config", "llama-3.1-70b", "--system", "h100-sxm", "--chips", "8", "--decode", "4096x64")
    searched = json.loads(run(capsys, *words, "--format", "json"))["steps"][0]
    given = json.loads(run(capsys, *words, "--degrees", "tp=4,dp=2", "--format", "json"))["steps"][0]

    assert searched["degrees"] == "TP8"
    assert searched["degrees_tried"] > 20
    assert given["degrees"] == "TP4 DP2"
    assert given["time_s"] >= searched["time_s"]


SHEET = """name,mine
cores,64
frequency [GHz],1.5
array,16x16x16
macs_per_cycle_per_core.bf16,1024
memory.bandwidth [GB/s],1000
memory.capacity [GB],64
memory.L2.capacity [MB],32
memory.L2.bandwidth [TB/s],4
memory.L1.capacity [KiB],256
memory.L1.shared_by,1
energy.mac.bf16 [pJ],0.8
memory.energy [pJ/B],6
idle [W],50
tdp [W],{tdp}
"""


def test_a_spreadsheet_gives_energy_and_a_limit_of_power(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    records = []
    for tdp in (1000, 60):
        path = tmp_path / f"hw{tdp}.csv"
        path.write_text(SHEET.format(tdp=tdp))
        words = ("--system", str(path), "--prefill", "512", "--format", "json")
        records.append(json.loads(run(capsys, *words))["steps"][0])
    free, limited = records

    assert free["energy_j"] > 0
    assert (free["is_throttled"], limited["is_throttled"]) == (False, True)
    assert limited["chip_power_w"] == pytest.approx(60)
    assert limited["time_s"] > free["time_s"]
    assert free["roofline_s"] <= free["bound_s"] <= free["tiling_s"]
    assert "J/token" in run(capsys, "--system", str(path), "--decode", "64x2")


BAD = (
    ("found no step", ()),
    ("found '0' against|found 0 against", ("--decode", "8448x0")),
    ("unknown number format 'fp9'", ("--prefill", "8", "--dtype", "fp9")),
    ("no such file or known system", ("--prefill", "8", "--system", "nothing")),
    ("no such file, folder, shipped name", ("--prefill", "8", "--config", "nothing")),
    ("found a context of 200000 tokens against at most 131072", ("--prefill", "200000")),
    ("found no rate for fp32", ("--prefill", "8", "--dtype", "fp32")),
    ("57 of 256 sequences fit", ("--decode", "8448x256", "--system", "h100-sxm")),
    ("found 16 chips against parts of its 8", ("--decode", "8", "--system", "h100-sxm", "--chips", "16")),
    ("--sweep: unknown change 'bach' \\(did you mean 'batch'", ("--decode", "8", "--sweep", "bach=1")),
    ("unknown degree 'xp'", ("--decode", "8", "--degrees", "xp=1")),
    ("against a whole number", ("--decode", "8", "--chips", "0")),
    ("which says by what", ("--decode", "8", "--time", "calibrated")),
    ("no such file or calibration", ("--decode", "8", "--efficiency", "b100")),
    ("found no numbers above 0|cannot be read", ("--decode", "8", "--expert-histogram", "missing")),
    ("--serve: found '8' against USERSxPROMPT:ANSWER", ("--serve", "8")),
    ("--serve: found --decode", ("--serve", "8x8:8", "--decode", "8")),
    ("--tpot: found '5' against a time above 0", ("--serve", "8x8:8", "--tpot", "5")),
    ("--tpot 0.001ms: found .* ms per token at least", ("--serve", "8x8:8", "--tpot", "0.001ms")),
    ("a context of 200000 tokens against at most 131072", ("--serve", "8x100000:100000")),
    ("unknown architecture", ("--decode", "8", "--config", "CONFIG")),
    ("--serve: found '8x8:8,8' against USERSxPROMPT:ANSWER", ("--serve", "8x8:8,8")),
    ("--serve: found '8x8:8\\*0' against USERSxPROMPT:ANSWER", ("--serve", "8x8:8*0")),
    ("--tpot: found no --serve, which it is about", ("--decode", "8", "--tpot", "5ms")),
    ("--split-norms: found no --train, which it is about", ("--decode", "8", "--split-norms")),
    ("--serve: found 0 users", ("--serve", "0x8:8")),
    ("--serve: found --html against a table of plans", ("--serve", "8x8:8", "--html", "page.html")),
    ("a shared prefix of 8 tokens against prompts of 8", ("--serve", "8x8:8,9:9", "--shared-prefix", "8")),
    ("--speculate: found '4' against LENGTH:RATE", ("--serve", "8x8:8", "--speculate", "4")),
    ("--speculate: found '4:1.5' against LENGTH:RATE", ("--serve", "8x8:8", "--speculate", "4:1.5")),
    ("no such file, folder, shipped name", ("--serve", "8x8:8", "--speculate", "4:0.5:nothing")),
    ("--train: found '8' against BATCHxLENGTH", ("--train", "8")),
    ("--train: found '8x1' against BATCHxLENGTH", ("--train", "8x1")),
    ("--serve: found --train", ("--train", "8x8", "--serve", "8x8:8")),
    ("--train: found --html", ("--train", "8x8", "--html", "page.html")),
    ("--train: found --fusion full", ("--train", "8x8", "--fusion", "full")),
    ("found sequences of 200000 tokens against at most 131072", ("--train", "8x200000")),
    (r"GiB on a chip \(15\.0 of weights, 29\.9 of gradients", ("--train", "8x2048", "--system", "h100-sxm")),
)


@pytest.mark.parametrize(("message", "words"), BAD)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, message: str, words: tuple[str, ...]
) -> None:
    import re

    config = tmp_path / "config.json"
    config.write_text('{"model_type": "rwkv"}')
    status = main(["llm", *(str(config) if word == "CONFIG" else word for word in words)])
    error = capsys.readouterr().err

    assert status == 1
    assert re.search(message, error), error
    assert len(error.strip().splitlines()) == 1


def test_a_serving_plan_has_what_users_see(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--config", "gpt2", "--system", "h100-sxm", "--chips", "1,2", "--serve", "8x200:50", "--tpot", "5ms", "-v")
    text = run(capsys, *words, "--usd-per-chip-hour", "2")

    assert "8 users at once, prompts of 200 and answers of 50 tokens; TPOT at most 5ms; counted by roofline" in text
    assert "one chip" in text
    assert "USD per" in text
    assert "users ask anew" in text


def test_serving_plans_have_lengths_caches_and_drafts_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--config", "llama-3.1-8b", "--system", "h100-sxm", "--chips", "4", "--serve", "16x2048:64*3,512:200")
    more = ("--shared-prefix", "256", "--speculate", "3:0.8:llama-3.2-1b", "--usd-per-chip-hour", "3")
    text = run(capsys, *words, *more)
    report = json.loads(run(capsys, *words, *more, "--format", "json"))
    rows = list(csv.DictReader(run(capsys, *words, *more, "--format", "csv").splitlines()))

    assert "of 2048:64 (3), 512:200 (1) tokens, of which 256 are cached; 2.95 tokens per step by drafts" in " ".join(
        text.split()
    )
    assert report["lengths"][0] == {"prompt": 2048, "answer": 64, "weight": 3}
    assert [row["prompts"] for row in rows] == [plan["prompts"] for plan in report["plans"]]
    assert any(plan["prompts"].startswith("on other chips") for plan in report["plans"])
    for plan in report["plans"]:
        assert plan["chips"] == 4
        assert plan["tokens_per_s"] == pytest.approx(4 * plan["tokens_per_s_per_chip"])
        assert plan["usd_per_million_tokens"] == pytest.approx(3 / 3600 / plan["tokens_per_s_per_chip"] * 1e6)
    alone = json.loads(run(capsys, *words, "--format", "json"))
    assert alone["tokens_per_step"] == 1.0
    assert alone["cached_tokens"] == 0


def test_a_state_per_sequence_stands_beside_the_cache_per_token(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "jamba", "num_hidden_layers": 8, "num_experts": 1}))
    words = ("--config", str(tmp_path), "--system", "h100-sxm")
    report = json.loads(run(capsys, *words, "--decode", "128", "--format", "json"))
    plans = json.loads(run(capsys, *words, "--serve", "4x128:16", "--format", "json"))
    states = 7 * (4 * 8192 * 16 + 2 * 8192 * 4)  # of 7 mixers, in fp32, and 4 tokens of their convolutions

    assert report["model"]["kv_bytes_per_token"] == plans["kv_bytes_per_token"] == 2 * 2 * 8 * 128
    assert report["model"]["state_bytes_per_sequence"] == plans["state_bytes_per_sequence"] == states
    assert "cache 4,096 bytes per token and 3.9 MiB per sequence" in run(capsys, *words, "--decode", "128")
    assert "a user's cache: 4,096 bytes per token, and 3.9 MiB however long" in run(
        capsys, *words, "--serve", "4x128:16"
    )


def test_serving_plans_have_energy_where_a_device_says_what_it_costs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sheet = tmp_path / "devices.csv"
    sheet.write_text("name,chip\npeak.bf16 [TFLOP/s],400\nmemory.bandwidth [GB/s],2000\nidle [W],50\n")
    words = ("--config", "gpt2", "--system", str(sheet), "--serve", "4x64:32")
    (plan, *_) = json.loads(run(capsys, *words, "--format", "json"))["plans"]

    assert plan["energy_j_per_token"] == pytest.approx(50 / plan["tokens_per_s"], rel=0.05)
    assert "J per" in run(capsys, *words)


def test_training_plans_have_times_and_memory_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--config", "gpt2", "--system", "h100-sxm", "--chips", "1,4", "--train", "64x512", "--dropout")
    text = run(capsys, *words, "--usd-per-chip-hour", "2", "-v")
    report = json.loads(run(capsys, *words, "--format", "json"))
    rows = list(csv.DictReader(run(capsys, *words, "--format", "csv").splitlines()))
    best = report["plans"][0]

    for word in ("a step of 64 sequences of 512 tokens", "USD per", "the optimiser is Adam", "lm_head_bwd_weights"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 120
    assert [row["degrees"] for row in rows] == [plan["degrees"] for plan in report["plans"]]
    seconds = ("forward_s", "recompute_s", "backward_s", "exchange_s", "bubble_s", "gradients_s", "optimiser_s")
    for plan in report["plans"]:
        assert plan["time_s"] == pytest.approx(sum(plan[name] for name in seconds))
        named = ("weight_bytes", "gradient_bytes", "optimiser_bytes", "activation_bytes", "working_bytes")
        assert plan["held_bytes"] == sum(plan[name] for name in named)
    macs = sum(kernel["count"] * kernel["macs"] for kernel in best["kernels"])
    forward = sum(one["count"] * one["macs"] for one in best["kernels"] if "_bwd" not in one["name"])
    assert macs > 3 * forward  # attention computes its scores again
    assert "kernels" not in report["plans"][1]
