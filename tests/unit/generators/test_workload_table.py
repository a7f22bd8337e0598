"""The table of generators: names, parameters and refusals."""

import inspect

import pytest

from dfcompile.dfmodel_backend.design_file.message import text_of
from dfcompile.errors import UserError
from dfcompile.generators.catalogue import WORKLOADS, find_generator
from dfcompile.generators.language_model_workloads import llm_decode, llm_forward

HEADS = {"hidden": 8, "seq": 4, "num_head": 2, "head_dim": 4, "word": 2}
SMALL: dict[str, dict[str, int | str]] = {
    "llm-fwd": {**HEADS},
    "llm-multilayer": {**HEADS, "layers": 2},
    "llm-fwdbwd": {**HEADS},
    "llm-decode": {"hidden": 8, "num_head": 2, "head_dim": 4, "word": 2, "window": 16, "tensor_parallel": 2},
    "dlrm": {
        "mlp_dim": 8,
        "bottom_num_mlp": 2,
        "top_num_mlp": 2,
        "pooled_row": 2,
        "num_table": 3,
        "emb_dim": 4,
        "micro_batch_size": 4,
        "word": 2,
    },
    "hpl": {"n": 8, "b": 2, "word": 8},
    "fft": {"length": 64, "word": 4},
    "mamba-scan": {"seq": 8, "hidden": 4, "word": 2},
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_parameters_are_those_of_the_function(name: str) -> None:
    generator = WORKLOADS[name]
    signature = inspect.signature(generator.function).parameters
    hidden = {"layers"} if name == "llm-fwd" else set()

    assert {parameter.name for parameter in generator.settings} == set(signature) - hidden
    for parameter in generator.settings:
        default = signature[parameter.name].default
        if parameter.is_required:
            assert default is inspect.Parameter.empty or parameter.name == "layers"
        else:
            assert default == parameter.default
        assert parameter.text


@pytest.mark.parametrize("name", WORKLOADS)
def test_required_arguments_suffice(name: str) -> None:
    generator = WORKLOADS[name]

    required = {parameter.name for parameter in generator.settings if parameter.is_required}
    assert required == set(SMALL[name])
    assert text_of(generator.generate(SMALL[name])).startswith("kernels {")


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_argument_below_1_is_refused_by_name(name: str) -> None:
    generator = WORKLOADS[name]
    for parameter in generator.settings:
        if not parameter.choices:
            with pytest.raises(UserError, match=f"found {parameter.name} 0 against at least 1"):
                generator.generate({**SMALL[name], parameter.name: 0})


@pytest.mark.parametrize("name", WORKLOADS)
def test_missing_arguments_are_named(name: str) -> None:
    for missing in SMALL[name]:
        given = {argument: value for argument, value in SMALL[name].items() if argument != missing}
        with pytest.raises(UserError, match=f"{name}: found no {missing} against a value for it"):
            WORKLOADS[name].generate(given)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("llm-fwd", {"num_head": 3}, "llm-fwd: found num_head 3 x head_dim 4 = 12 against hidden 8"),
        ("llm-fwdbwd", {"hidden": 9}, "llm-fwdbwd: found num_head 2 x head_dim 4 = 8 against hidden 9"),
        ("llm-decode", {"head_dim": 5}, "llm-decode: found num_head 2 x head_dim 5 = 10 against hidden 8"),
        ("llm-decode", {"cache": "residnt"}, r"found cache 'residnt' against a known one \(did you mean 'resident'"),
        ("llm-fwd", {"hiden": 4}, r"llm-fwd: no argument 'hiden' \(did you mean 'hidden'\?\)"),
        ("llm-fwd", {"seq": "4"}, "llm-fwd: found seq '4' against an integer"),
        ("llm-fwd", {"seq": True}, "llm-fwd: found seq True against an integer"),
        ("llm-fwd", {"word": 2**63}, f"llm-fwd: found word {2**63} against at most {2**62}"),
        ("hpl", {"b": 9}, "hpl: found b 9 against at most n 8"),
        ("hpl", {"iterations": 5}, "hpl: found iterations 5 against 4 block columns of b 2 in n 8"),
        ("hpl", {"n": 2**21, "b": 1}, f"hpl: found a graph of {2**21} kernels against at most 1000000"),
        (
            "llm-multilayer",
            {"layers": 10**5},
            "llm-multilayer: found a graph of 1800000 kernels against at most 1000000",
        ),
        ("dlrm", {"top_num_mlp": 10**6}, "dlrm: found a graph of 3000006 kernels against at most 1000000"),
        ("fft", {"radix": 9}, r"fft: found radix 9 against 2 to 8 \(length 64 has sides of 8\)"),
        ("fft", {"radix": 1}, "fft: found radix 1 against 2 to 8"),
        ("fft", {"length": 1}, r"fft: found length 1 against at least 4"),
        ("mamba-scan", {"seq": 1}, "mamba-scan: found seq 1 against at least 2"),
    ],
)
def test_contradictions_name_the_argument(name: str, arguments: dict[str, int | str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        WORKLOADS[name].generate({**SMALL[name], **arguments})


def test_unknown_workload_gets_a_hint() -> None:
    with pytest.raises(UserError, match=r"generator 'llm_fwd': unknown \(did you mean 'llm-fwd'\?\)"):
        find_generator("llm_fwd")


def test_functions_check_what_the_table_cannot() -> None:
    with pytest.raises(UserError, match="llm-decode: found cache 'disk' against a known one"):
        llm_decode(hidden=8, num_head=2, head_dim=4, word=2, window=1, tensor_parallel=1, cache="disk")
    with pytest.raises(UserError, match="found layers 0 against at least 1"):
        llm_forward(hidden=8, seq=4, num_head=2, head_dim=4, word=2, layers=0)
