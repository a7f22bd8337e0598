"""Words of the command line: help, repeated options, hints, standard streams, completion."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dfcompile.cli import main as cli
from dfcompile.generators.catalogue import GENERATORS
from dfcompile.report.plain_values import Json
from tests.locations import DESIGNS
from tests.onnx_files import save_convolution

Capture = pytest.CaptureFixture[str]

DAG = "dfcompile-dag/1 g\ntask a\ntask b\nedge a -> b volume=4\n"
QUICKLY = ("--expand", "published", "--partition", "sb-lts")  # of models
SYSTEM = (
    "name: mine\n"
    "accelerator: {cores: 2, lanes_per_core: 1, stages_per_core: 1, frequency_ghz: 1400, sram_bytes_per_core: 0}\n"
    "dram: {bandwidth_gb_per_s: 100}\n"
)


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(capture: Capture, *words: str) -> str:
    assert cli.main(words) == 1
    printed = capture.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    return printed.err.removeprefix("dfcompile: error: ").rstrip("\n")


@pytest.mark.parametrize(
    "words",
    [[], *([name] for name in cli.COMMANDS), *(["generate", name] for name in GENERATORS), ["x.txt"]],
    ids=" ".join,
)
def test_every_command_has_both_names_of_help(words: list[str], capsys: Capture) -> None:
    texts = []
    for name in ("-h", "--help"):
        assert cli.main([*words, name]) == 0
        texts.append(capsys.readouterr().out)

    assert texts[0] == texts[1]
    assert texts[0].startswith("Usage: dfcompile")
    assert "-h, --help" in texts[0]


def test_the_help_lists_commands_before_options(capsys: Capture) -> None:
    for words in ([], ["--help"]):
        assert cli.main(words) == 0
        text = capsys.readouterr().out
        assert text.index("Usage:") < text.index("Compile:") < text.index("expansions  ") < text.index("Most used:")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["m.onnx", "--pes", "4", "--solver", "dp", "--solver", "cbc"], "--solver"),
        (["m.onnx", "--pes", "4", "--system", "a", "--system=b"], "--system"),
        (["m.onnx", "--pes", "4", "--partition", "best", "--partition", "best"], "--partition"),
        (["m.onnx", "--pes", "4", "--barrier", "--no-barrier"], "--barrier"),
        (["m.onnx", "--pes", "4", "--verify", "--verify"], "--verify"),
        (["m.onnx", "--pes", "4", "-o", "a", "--output", "b"], "--output"),
        (["m.onnx", "--pes", "4", "--format", "csv", "--format", "json"], "--format"),
        (["m.onnx", "--pes", "4", "--trace", "a", "--trace", "b"], "--trace"),
        (["schedule", "g.dag", "--pes", "4", "--fifo", "rule", "--fifo", "4"], "--fifo"),
        (["schedule", "g.dag", "--pes", "4", "--timing", "steady", "--timing", "exact"], "--timing"),
        (["x.txt", "--compat", "right", "--compat", "dfmodel"], "--compat"),
        (["generate", "fft", "--size", "8", "--size", "16"], "--size"),
    ],
)
def test_option_that_takes_one_value_is_not_given_two(words: list[str], option: str, capsys: Capture) -> None:
    assert refusal(capsys, *words) == f"option '{option}' is given twice against once"


def part(result: dict[str, Json], name: str) -> dict[str, Json]:
    found = result[name]
    assert isinstance(found, dict)
    return found


def test_lists_are_joined_from_several_options(capsys: Capture) -> None:
    save_convolution(Path("conv.onnx"), shape=(1, 1, 6, 6))
    Path("g.dag").write_text(DAG)

    def results(*words: str) -> list[dict[str, Json]]:
        assert cli.main([*words, "--format", "json"]) == 0
        found: list[dict[str, Json]] = json.loads(capsys.readouterr().out)["results"]
        return found

    assert [found["pes"] for found in results("conv.onnx", "--pes", "4", "--pes", "8,2", *QUICKLY)] == [4, 8, 2]
    several = results("schedule", "g.dag", "--pes", "1", "--pes", "2", "--partition", "best", "--partition", "sb-lts")
    assert [(found["pes"], part(found, "schedule")["partition"]) for found in several] == [
        (1, "best"), (1, "sb-lts"), (2, "best"), (2, "sb-lts"),
    ]  # fmt: skip
    torus = ("--chips", "1", "--chips", "2", "--system", "sn10", *QUICKLY)
    assert [part(found, "mapping")["chips_available"] for found in results("conv.onnx", "--pes", "4", *torus)] == [1, 2]
    assert refusal(capsys, "conv.onnx", "--pes", "4", "--pes", "4") == "--pes: 4 is given twice"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["system"], "'system': no such command or file (did you mean 'systems'?)"),
        (["shedule", "g.dag"], "(did you mean 'schedule'?)"),
        (["Expansions"], "(did you mean 'expansions'?)"),
        (["lenet.txt", "--pes", "4"], "no such option '--pes' for a DFModel set-up file, which 'lenet.txt' is"),
        (["m.onnx", "--pes", "4", "--pass", "x"], "no such option '--pass' (did you mean '--passes'?)"),
        (["m.onnx", "--pes", "4", "--sytem", "x"], "no such option '--sytem' (did you mean '--system'?)"),
        (["m.onnx", "--pes", "4", "--zzzzz"], "no such option '--zzzzz' (-h lists them)"),
        (["m.onnx", "--pes", "4", "--dim", "batch"], "--dim: found 'batch' against NAME=SIZE"),
        (["m.onnx", "--pes", "4", "--dim", "n=2", "--dim", "n=3"], "--dim: 'n' is given twice"),
        (["m.onnx", "--pes", "4", "--dim", "n=-1"], "--dim n: found '-1' against an integer from 0"),
        (["m.onnx", "--pes", "4", "--shape", "x=1,1,8,8"], "(--shape x=1x1x8x8)"),
        (["m.onnx", "--pes", "4", "--shape", "x=(1, 1, 8)"], "(--shape x=1x1x8)"),
        (["g.dag", "--pes", "4"], "a canonical DAG is given to 'dfcompile schedule'"),
    ],
)
def test_hints(words: list[str], expected: str, capsys: Capture) -> None:
    assert expected in refusal(capsys, *words)


def test_file_named_nearly_like_a_command_is_a_model(capsys: Capture) -> None:
    Path("system").write_text("")

    assert refusal(capsys, "system", "--pes", "4") == "system: no suffix against a model file (.onnx, .pt2, .py)"


def give_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_standard_input_and_output_are_files_named_by_a_dash(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    save_convolution(Path("conv.onnx"), shape=(1, 1, 6, 6))
    Path("g.dag").write_text(DAG)
    assert cli.main(["schedule", "g.dag", "--pes", "2"]) == 0
    expected = capsys.readouterr().out
    give_input(monkeypatch, DAG)
    assert cli.main(["schedule", "-", "--pes", "2", "-o", "-"]) == 0
    assert capsys.readouterr().out == expected

    give_input(monkeypatch, SYSTEM)
    assert cli.main(["conv.onnx", "--pes", "2", "--system", "-", *QUICKLY, "--format", "json", "-o", "-"]) == 0
    printed = capsys.readouterr()
    (warning,) = json.loads(printed.out)["warnings"]
    assert printed.err == f"dfcompile: warning: {warning}\n"
    assert warning == "-: key 'accelerator.frequency_ghz': found 1400 GHz against at most 20 GHz (is it in MHz?)"

    setup = DESIGNS / "fft_a100_1024.txt"
    assert cli.main([str(setup), "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)["figures"]
    give_input(monkeypatch, setup.read_text())
    assert cli.main(["-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"] == expected
    assert not Path("-").exists()


def test_assumptions_are_counted_and_listed_on_demand(capsys: Capture) -> None:
    save_convolution(Path("conv.onnx"), shape=(1, 1, 6, 6))
    Path("two.dag").write_text(DAG)
    setup = DESIGNS / "fft_a100_1024.txt"
    for words in (["schedule", "two.dag", "--pes", "2"], [str(setup)]):
        assert cli.main([*words, "--format", "json"]) == 0
        count = len(json.loads(capsys.readouterr().out)["assumptions"])
        assert cli.main(words) == 0
        short = capsys.readouterr().out
        assert cli.main([*words, "-v"]) == 0
        long = capsys.readouterr().out

        assert short.endswith(f"\n{count} assumptions: -v lists them\n")
        assert "\nassumptions\n" in long
        assert len(long.split("\nassumptions\n")[1].splitlines()) >= count
        assert long.split("\nassumptions\n")[0].rstrip() == short.rpartition(f"{count} assumptions")[0].rstrip()


def completions(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capture: Capture) -> set[str]:
    monkeypatch.setenv("_DFCOMPILE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["dfcompile", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert cli.main([]) == 0
    kinds = [line.split(",", 1) for line in capture.readouterr().out.splitlines()]
    return {value for kind, value in kinds if kind == "plain"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["exp"], {"expansions", "explore"}),
        (["s"], {"schedule", "systems"}),
        (["--pa"], {"--partition", "--passes"}),
        (["m.onnx", "--pe"], {"--pes"}),
        (["m.onnx", "--pes", "4", "--volumes", "e"], {"exact"}),
        (["m.onnx", "--system", "wse"], {"wse2"}),
        (["m.onnx", "--partition", "sb"], {"sb-rlx", "sb-lts"}),
        (["m.onnx", "--expand", "au"], {"auto"}),
        (["m.onnx", "--expand", "pub"], {"published"}),
        (["m.onnx", "--expand", "MatMu"], {"MatMul=", "MatMulInteger="}),
        (["m.onnx", "--expand", "conv1:MatMul=mv,l"], {"conv1:MatMul=mv,lmv"}),
        (["schedule", "g.dag", "--partition", "best,w"], {"best,work-ordered"}),
        (["schedule", "g.dag", "--sim"], {"--simulate"}),
        (["setup.txt", "--shard"], {"--sharding-objective"}),
        (["generate", "ch"], {"chain", "cholesky"}),
        (["llm", "--system", "h100"], {"h100", "h100-sxm", "h100_dgx1"}),
        (["llm", "--config", "mixtral"], {"mixtral-8x7b", "mixtral-8x22b"}),
        (["generate", "fft", "--se"], {"--seed"}),
    ],
)
def test_shell_completes_commands_options_and_names(
    words: list[str], expected: set[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert completions(words, monkeypatch, capsys) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_script_of_a_shell_is_printed(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("_DFCOMPILE_COMPLETE", f"{shell}_source")

    assert cli.main([]) == 0
    assert f"_DFCOMPILE_COMPLETE={shell}_complete" in capsys.readouterr().out

    monkeypatch.setenv("_DFCOMPILE_COMPLETE", "nosuch_source")
    assert "against bash_source, zsh_source or fish_source" in refusal(capsys, "x")
