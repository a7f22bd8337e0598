"""Every graph that a generator makes is a design without contradictions, and survives text and binary."""

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.design_file.message import parse_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.generators.catalogue import WORKLOADS
from dfcompile.generators.workload_kernels import design_text
from tests.examples import examples

MACHINE = """
system {
  num_chip: 1
  accelerator { core: 8 systolic_width: 4 systolic_height: 4 freq: 1 }
  r { x: 1 link_bw_x: 1 par_x: "TP" }
  memory { dram_bw: 1 }
}
"""
SIZES = st.integers(1, 5000)
FEW = st.integers(1, 6)
KINDS = {"dlrm": "dlrm { num_table: 1 emb_dim: 1 row: 1 global_batch_size: 4 }", "hpl": "hpl { n: 8 b: 4 }",
         "fft": "fft { length: 64 }"}  # fmt: skip


@st.composite
def written(draw: st.DrawFn) -> schema.DSE:
    name = draw(st.sampled_from(sorted(WORKLOADS)))
    heads, head_dim, word = draw(FEW), draw(SIZES), draw(st.sampled_from([1, 2, 4]))
    sizes = {"num_head": heads, "head_dim": head_dim, "hidden": heads * head_dim, "word": word}
    arguments: dict[str, int | str] = {}
    for parameter in WORKLOADS[name].settings:
        if parameter.choices:
            arguments[parameter.name] = draw(st.sampled_from(parameter.choices))
        elif name == "hpl" and parameter.name in ("n", "b", "iterations"):
            arguments |= {"n": 4096, "b": 128, "iterations": draw(st.integers(1, 32))}
        elif name == "fft" and parameter.name in ("length", "radix"):
            arguments |= {"length": draw(st.integers(64, 10**12)), "radix": draw(st.integers(2, 8))}
        elif parameter.name in ("layers", "bottom_num_mlp", "top_num_mlp"):
            arguments[parameter.name] = draw(FEW)
        elif parameter.name in sizes and name != "mamba-scan":
            arguments[parameter.name] = sizes[parameter.name]
        else:
            arguments[parameter.name] = word if parameter.name == "word" else draw(st.integers(2, 5000))
    layers = int(arguments.get("layers", 1))
    llm = (
        f"llm {{ hidden_dim: {heads * head_dim} head_dim: {head_dim} num_head: {heads} seq_len: 64 num_layer: {layers} "
        f"global_batch_size: 4 num_layer_in_graph: {layers} }}"
    )
    skips = "skip_inter_chip_optimization: true" if name == "mamba-scan" else ""
    execution = f"execution_style: DATAFLOW overlap: NO_OVERLAP word: {word} {skips} num_config: 1"
    text = design_text(WORKLOADS[name].generate(arguments))
    return parse_message(f"{text}{MACHINE}execution {{ {KINDS.get(name, llm)} {execution} }}", name)


@examples(60)
@given(written())
def test_a_generated_graph_is_without_contradictions(message: schema.DSE) -> None:
    design = design_of(message, "x.txt")

    assert design_of(parse_message(text_of(message), "x.txt"), "x.txt") == design
    assert all(kernel.output_bytes > 0 for kernel in design.kernels)
    assert all((kernel.collective is Collective.NONE) == (kernel.collective_bytes == 0) for kernel in design.kernels)
