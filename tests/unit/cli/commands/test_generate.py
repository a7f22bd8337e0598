"""`dfcompile generate`: every generator by name, with its arguments, in the form that was asked for."""

from pathlib import Path

import pytest

from dfcompile.canonical_dag import CanonicalDag, parse_dag, read_dag
from dfcompile.cli import main as cli
from dfcompile.dfmodel_backend.design_file.message import read_message
from dfcompile.generators import canonical_dags as dags
from dfcompile.generators.catalogue import GENERATORS, WORKLOADS

Capture = pytest.CaptureFixture[str]

WALK = ("--volume", "64", "--seed", "3")


def generated(capture: Capture, *words: str) -> str:
    status = cli.main(["generate", *words])
    printed = capture.readouterr()
    assert (status, printed.err) == (0, "")
    return printed.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("chain", "--size", "5", *WALK), dags.chain(5, 64, 3)),
        (("fft", "--size", "8", *WALK), dags.fft(8, 64, 3)),
        (("gaussian", "--size", "4", *WALK), dags.gaussian(4, 64, 3)),
        (("cholesky", "--size", "3", *WALK), dags.cholesky(3, 64, 3)),
        (("fork-join", "--first", "3", "--second", "2", *WALK), dags.fork_join(3, 2, 64, 3)),
        (("chain", "--size", "5"), dags.chain(5)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_arguments_reach_the_generator(words: tuple[str, ...], expected: CanonicalDag, capsys: Capture) -> None:
    assert parse_dag(generated(capsys, *words)) == expected


def test_suffix_or_option_says_which_form(capsys: Capture, tmp_path: Path) -> None:
    words = ("chain", "--size", "2")
    for name in ("graph.json", "graph.dag"):
        assert generated(capsys, *words, "-o", str(tmp_path / name)) == ""
    forms = [(tmp_path / name).read_text()[:1] for name in ("graph.json", "graph.dag")]

    assert forms == ["{", "d"]
    assert generated(capsys, *words, "-o", "-") == generated(capsys, *words) == (tmp_path / "graph.dag").read_text()
    assert generated(capsys, *words, "--format", "json") == (tmp_path / "graph.json").read_text()


@pytest.mark.parametrize(("expansion", "tasks"), [("mv", 1 + 5 + 1), ("op", 4 + 1), ("ip", 3 * 5 + 1)])
def test_matrix_product_has_the_tasks_of_its_expansion(expansion: str, tasks: int, capsys: Capture) -> None:
    words = ("--n", "3", "--k", "4", "--m", "5", "--expansion", expansion)

    assert read_dag(generated(capsys, "matmul", *words)).tasks_count == tasks


def test_large_arrays_of_few_tasks_are_no_large_graph(capsys: Capture) -> None:
    text = generated(capsys, "matmul", "--n", "64", "--k", "1000000", "--m", "20000")

    assert len(text) < 1100
    assert read_dag(text).tasks_count == 20_002


def test_convolution_is_that_of_the_published_table(capsys: Capture, tmp_path: Path) -> None:
    file = str(tmp_path / "conv.dag")
    words = ("--size", "28", "--kernel", "5", "--filters", "6", "--volumes", "array", "-o", file)
    generated(capsys, "convolution", *words)
    status = cli.main(["schedule", file, "--pes", "16,128", "--partition", "sb-rlx", "--format", "csv"])
    _, first, second = capsys.readouterr().out.splitlines()

    assert status == 0
    assert ",145730," in first
    assert ",35138," in second


def test_strided_and_padded_convolution_has_the_size_of_its_windows(capsys: Capture) -> None:
    words = ("--size", "8", "--kernel", "3", "--filters", "2", "--channels", "3", "--stride", "2", "--padding", "1")
    dag = read_dag(generated(capsys, "convolution", *words))
    (gemm,) = [kernel for kernel in dag.kernels if kernel.op == "MatMul"]

    assert (gemm.m, gemm.k, gemm.n) == (2, 3 * 3 * 3, 4 * 4)


def test_every_workload_is_there_and_no_name_is_taken_twice() -> None:
    workloads = [found for found in GENERATORS.values() if found.formats == ("text",)]

    assert len(workloads) == len(WORKLOADS)
    assert {"fft", "fft-workload", "llm-fwdbwd"} <= set(GENERATORS)
    assert all(found.name == name for name, found in GENERATORS.items())


def test_workload_is_a_design_file(capsys: Capture, tmp_path: Path) -> None:
    words = ("--hidden", "64", "--seq", "8", "--num-head", "4", "--head-dim", "16", "--word", "2")
    file = tmp_path / "setup.txt"
    generated(capsys, "llm-fwd", *words, "-o", str(file))

    graph = WORKLOADS["llm-fwd"].generate({"hidden": 64, "seq": 8, "num_head": 4, "head_dim": 16, "word": 2})
    assert [kernel.name for kernel in read_message(file).dataflow_graph.kernels] == [
        kernel.name for kernel in graph.kernels
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "generate: found no generator against one of chain, fft"),
        (["ftf"], "generator 'ftf': unknown (did you mean 'fft'?)"),
        (["fft"], "missing option '--size'"),
        (["fft", "--size", "x"], "'--size': 'x' is not a valid integer"),
        (["fft", "--size", "12"], "fft: 12 points against a power of two"),
        (["fft", "--size", "8", "--sed", "1"], "no such option '--sed'"),
        (["fft", "--size", "8", "--volume", "0"], "fft: volume 0 against 1 or more"),
        (["fft", "--size", str(2**60)], "fft: "),
        (["fft", "--size", "8", "-o", "missing/out"], "no folder"),
        (["matmul", "--n", "0", "--k", "2", "--m", "2"], "matmul: a size of 0 in A[0, 2] against 1 or more"),
        (["matmul", "--n", "2", "--k", "3", "--m", "99999999"], "99999999 of 100000001 tasks against at most 10000000"),
        (["matmul", "--n", "99999999", "--k", "99999999", "--m", "2"], "elements against at most 281474976710656"),
        (["convolution", "--size", "9999", "--kernel", "1", "--filters", "2"], "tasks against at most 10000000"),
        (
            ["matmul", "--n", "2", "--k", "2", "--m", "2", "--expansion", "opp"],
            "expansion 'MatMul=opp': MatMul has no 'opp' (did you mean 'op'?)",
        ),
        (["convolution", "--size", "4", "--kernel", "5", "--filters", "1"], "convolution: kernel 5 against at most 4"),
        (["llm-fwd", "--hidden", "8"], "missing option '--seq'"),
    ],
)
def test_wrong_arguments_of_a_generator_are_one_line(words: list[str], expected: str, capsys: Capture) -> None:
    status = cli.main(["generate", *words])
    printed = capsys.readouterr()

    assert (status, printed.out, printed.err.count("\n")) == (1, "", 1)
    assert expected in printed.err
