"""Design files that no honest tool writes: each is refused by one line that names the field."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.design_file.message import parse_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import design_of, parse_design
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from tests.examples import examples
from tests.locations import DESIGNS


def text_named(name: str) -> str:
    """A published file in the form that we write, so that a word of it stands where a test expects it."""
    return text_of(parse_message((DESIGNS / f"{name}.txt").read_text(), name))


LLM, DLRM, HPL, FFT, MAMBA, DECODE = (
    text_named(name)
    for name in (
        "readme_gpt3_1t_sn30",
        "dlrm_A_zionex_128",
        "hpl_h100_dgx1_1024",
        "fft_a100_1024",
        "mamba_scan_256k_rdu",
        "serve_gpt3_decode_genz_f10_1x",
    )
)
Q = 'name: "Q"\n    id: 3\n    config: -1\n    fwd_bwd: FWD\n    type: SYSTOLIC\n    gemm_input1_weight {\n'
UNSET = "found 0 against at least 1"
WHERE = "x.txt: "


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        # graph
        (LLM, "id: 3\n", "id: 2\n", "kernel 'Q': its id is taken by another kernel"),
        (LLM, "endIdx: 2\n", "endIdx: 1\n", "connection 1: from kernel 1 to itself"),
        (LLM, "endIdx: 2\n", "endIdx: -7\n", "connection 1: field 'endIdx': found -7 against at least 0"),
        (LLM, "startIdx: 1\n", "", "connection 1: no kernel with id 0"),
        (LLM, "startIdx: 19\n", "startIdx: 41\n", "kernel 'DropOut_3_bwd': part of, or behind, a cycle of connections"),
        (LLM, "fwd_bwd: FWD", "fwd_bwd: BWD",
         "connection 1 to 2: leads from the backward pass to kernel 'LayerNorm_1', whose"),
        # kernels
        (LLM, 'name: "Q"', r'name: "Q\n"', r"kernel 'Q\\n': field 'name': found 'Q\\n' against printable characters"),
        (LLM, 'name: "Q"', r'name: "\033[31m"', r"field 'name': found '\\x1b\[31m' against printable characters"),
        (LLM, "type: SIMD", "", "kernel 'Add_Prev_Layer': field 'type' is unset against SYSTOLIC or SIMD"),
        (LLM, "type: SIMD", "type: 9",
         "kernel 'Add_Prev_Layer': field 'type': found the number 9 against SYSTOLIC, SIMD"),
        (LLM, "type: SIMD", "type: VECTOR", r"""x.txt:\d+: enum type 'KernelKind' has no value named VECTOR"""),
        (LLM, Q, Q.replace("gemm_input1_weight", "elementwise_input1 { }\n    gemm_input1_weight"),
         '"gemm_input1_weight" is specified along with field "elementwise_input1"'),
        (LLM, Q + "      outer: 160", Q + "      outer: 0", f"kernel 'Q': field 'outer': {UNSET}"),
        (LLM, Q + "      outer: 160", Q + "      outer: -160",
         "kernel 'Q': field 'outer': found -160 against at least 0"),
        (LLM, Q + "      outer: 160", Q + "      outer: 80",
         "kernel 'Q': field 'output_tensor_size': found 104857600 bytes against 80 x 160 x 2048 elements of 2 = 52428"),
        (LLM, Q + "      outer: 160\n      M: 160", Q + f"      outer: 160\n      M: {2**63 - 1}",
         "kernel 'Q': field 'M': found 9223372036854775807 against at most 4611686018427387904"),
        (LLM, "weight_tensor_size: 1310720000.0", "weight_tensor_size: 5",
         "kernel 'Q': field 'weight_tensor_size': found 5"),
        (LLM, "output_tensor_size: 104857600.0", "output_tensor_size: nan",
         "'output_tensor_size': found nan against a fin"),
        (LLM, "output_tensor_size: 104857600.0", "output_tensor_size: inf",
         "'output_tensor_size': found inf against a fin"),
        (LLM, "output_tensor_size: 104857600.0", "output_tensor_size: 1e39",
         "'output_tensor_size': found inf against a f"),
        (LLM, "output_tensor_size: 104857600.0", "output_tensor_size: -1",
         "'output_tensor_size': found -1 against at lea"),
        (LLM, "output_tensor_size: 104857600.0", "",
         "'Add_Prev_Layer': field 'output_tensor_size': found 0 bytes against"),
        (LLM, "input_tensor_2_size: 1342177300.0", "input_tensor_2_size: 7",
         r"connection 8 to 9: brings 1.34217728e.09 bytes to kernel 'MHA_GEMM_2' against its input_t"),
        (LLM, "tiling: N_TILING", "", "kernel 'Add_Prev_Layer': field 'tiling' is unset against OUTER_TILING"),
        (LLM, "tiling: N_TILING", "tiling: NO_TILING",
         "'Add_Prev_Layer': field 'tiling': found NO_TILING against the dim"),
        (LLM, "tiling: N_TILING", "tiling: K_TILING", "field 'tiling': found K against a dimension of an elementwise"),
        (LLM, "tiling: N_TILING", "tiling: N_TILING sharding: K_SHARDING",
         "field 'sharding': found K against a dimension"),
        (LLM, "config: -1", "config: 6",
         "kernel 'Add_Prev_Layer': field 'config': found 6 against -1 .free. or 0 to 5"),
        (LLM, "config: -1", "config: -2", "kernel 'Add_Prev_Layer': field 'config': found -2 against at least -1"),
        (LLM, "communication_type: ALL_REDUCE_PERIODIC", "",
         "'communication_size': found 5.24288e.09 bytes of type NO_CO"),
        (LLM, "communication_type: ALL_REDUCE_PERIODIC", "communication_type: BROADCAST",
         "field 'communication_type': found BROADCAST against ALL_REDUCE, ALL_TO_ALL, ALL_GATHER, ALL_REDUCE_PERIODIC"),
        (FFT, "communication_size: 4294957900000.0", "", "found 0 bytes of type ALL_TO_ALL"),
        (FFT, "tiling: NO_TILING", "tiling: NO_TILING use_effective_stage: true",
         "needs field 'execution.effective_stag"),
        (HPL, "K: 1048576", f"K: {2**40}",
         "dimensions: found 1 x 1048576 x 1099511627776 x 2048 against at most 1e.18"),
        # system
        (LLM, "  r_r {", "  sw { x: 1 }\n  r_r {", 'is specified along with field "sw"'),
        (LLM, "  r_r {", "  r_r { }\n  r_r {", 'should not have multiple "r_r" fields'),
        (LLM, "  r_r {", "  HBD: 4\n  r_r {",
         "field 'system.HBD': found 4 against none, or a topology of three dimensi"),
        (LLM, "link_bw_x: 50.0", "", "field 'system.r_r.link_bw_x': found 0.0 against a positive"),
        (LLM, "num_chip: 1024", "", "field 'system.num_chip': found 0 against a positive"),
        (LLM, "num_chip: 1024", "num_chip: 99999999999999999999",
         r"x.txt:\d+: value out of range: 99999999999999999999"),
        (LLM, "num_chip: 1024", f"num_chip: {2**60}",
         f"field 'system.num_chip': found {2**60} against at most {2**24}"),
        (LLM, "num_chip: 1024", "num_chip: 1024 num_chip: 8", 'should not have multiple "num_chip" fields'),
        (LLM, "freq: 1.25", "freq: nan", "field 'system.accelerator.freq': found nan against a finite"),
        (LLM, "systolic_width: 32", "", "field 'system.accelerator.systolic_width': found 0 against a positive"),
        (LLM, "link_unit_price: 2.0", "link_unit_price: -2",
         "field 'cost.link_unit_price': found -2 against at least 0"),
        # execution
        (LLM, "execution_style: DATAFLOW", "", "field 'execution.execution_style' is unset against DATAFLOW or KERNEL"),
        (LLM, "execution_style: DATAFLOW", "execution_style: KERNEL_BY_KERNEL",
         "'execution.num_config': found 6 against t"),
        (LLM, "num_config: 6", f"num_config: {2**40}", f"'execution.num_config': found {2**40} against at most 1024"),
        (LLM, "word: 2", "", "field 'execution.word': found 0 against at least 1 byte"),
        (LLM, "word: 2", "word: 4",
         "field 'output_tensor_size': found 104857600 bytes against 1 x 25600 x 2048 elements of 4"),
        (LLM, "compute_util: 0.9", "compute_util: 90", "field 'execution.compute_util': found 90 against at most 1"),
        (LLM, "word: 2", 'word: 2 optimization: "MC"',
         "'execution.optimization': found 'MC' against CMN, CM, CN, C or none"),
        (LLM, "num_layer_in_graph: 1", "num_layer_in_graph: 3", "num_layer_in_graph': found 3 against 1, or all 128"),
        (LLM, "seq_len: 2048", "", f"field 'execution.llm.seq_len': {UNSET}"),
        (LLM, "num_layer: 128", "", f"field 'execution.llm.num_layer': {UNSET}"),
        (LLM, "hidden_dim: 25600", "", f"field 'execution.llm.hidden_dim': {UNSET}"),
        (LLM, "num_head: 160", "num_head: 100",
         "'execution.llm.hidden_dim': found 25600 against num_head x head_dim = 160"),
        (LLM, "global_batch_size: 3072", f"global_batch_size: {2**50}",
         "global_batch_size': found 1125899906842624 against"),
        (LLM, "seq_len: 2048", f"seq_len: {2**40}",
         "field 'execution.llm.seq_len': found 1099511627776 against at most"),
        (LLM, "  llm {", "  mamba { hidden: 1 }\n  llm {", 'is specified along with field "mamba"'),
        (DLRM, "num_table: 600", "", f"field 'execution.dlrm.num_table': {UNSET}"),
        (DLRM, "row: 14211469", "", f"field 'execution.dlrm.row': {UNSET}"),
        (DLRM, "global_batch_size: 128000000", "", "field 'execution.dlrm.global_batch_size' is unset"),
        (HPL, "n: 1048576", "", f"field 'execution.hpl.n': {UNSET}"),
        (HPL, "b: 2048", "", f"field 'execution.hpl.b': {UNSET}"),
        (FFT, "length: 1073740000000", "", f"field 'execution.fft.length': {UNSET}"),
        (FFT, "  fft {\n    length: 1073740000000\n    num_copy: 1\n  }", "",
         "'execution': found no workload against llm"),
        (FFT, "  fft {\n    length: 1073740000000\n    num_copy: 1\n  }", "mamba { hidden: 1 }",
         "found mamba against llm"),
        (FFT, "execution {", "execution {\n  transformer { }", r"unknown field 'transformer' of Execution \(known: "),
    ],
)  # fmt: skip
def test_one_line_names_the_field(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(UserError, match=message) as caught:
        parse_design(text.replace(old, new, 1), "x.txt")

    assert str(caught.value).startswith("x.txt")
    assert "\n" not in str(caught.value)


def test_published_designs_pass_all_of_it() -> None:
    for path in sorted(DESIGNS.glob("**/*.txt")):
        parse_design(path.read_text(), path.name)


def scalars_of(message: Message) -> Iterator[tuple[Message, str]]:
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            yield message, field.name
        elif field.is_repeated:
            for inner in value:
                yield from scalars_of(inner)
        elif message.HasField(field.name):
            yield from scalars_of(value)


NUMBERS = st.sampled_from([0, 1, -1, 2, 3, 7, 77, 2**31, 2**40, 2**62, 2**63 - 1])
REALS = st.sampled_from([0.0, -1.0, 1e-38, 0.5, 1.0, 3e38, float("nan"), float("inf"), float("-inf")])


@examples(60)
@given(st.data(), st.sampled_from([LLM, DLRM, HPL, FFT, MAMBA, DECODE]))
def test_a_design_with_any_three_fields_changed_is_read_or_refused_in_one_line(data: st.DataObject, text: str) -> None:
    message = parse_message(text, "x.txt")
    for _ in range(3):
        owner, name = data.draw(st.sampled_from(list(scalars_of(message))))
        field = owner.DESCRIPTOR.fields_by_name[name]
        if field.type == FieldDescriptor.TYPE_FLOAT:
            setattr(owner, name, data.draw(REALS))
        elif field.type == FieldDescriptor.TYPE_STRING:
            setattr(owner, name, data.draw(st.text(max_size=3)))
        elif field.type == FieldDescriptor.TYPE_BOOL:
            setattr(owner, name, data.draw(st.booleans()))
        else:
            number = data.draw(NUMBERS)
            setattr(owner, name, number if field.enum_type is None else number % 2**31)
    try:
        design_of(message, "x.txt")
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either outcome is right


def test_pins_do_not_run_backwards() -> None:
    message = parse_message((DESIGNS / "llm_175B_fwd_sramdram_mm.txt").read_text(), "x.txt")
    message.dataflow_graph.kernels[0].config, message.dataflow_graph.kernels[2].config = 2, 1

    with pytest.raises(
        UserError, match="kernel 'Q': field 'config': found 1 against at least 2, that of a kernel befo"
    ):
        design_of(message, "x.txt")


def test_pins_keep_to_the_half_of_their_pass() -> None:
    message = parse_message(LLM, "x.txt")
    message.dataflow_graph.kernels[0].config = 3

    with pytest.raises(
        UserError, match="'Add_Prev_Layer': field 'config': found 3 against at most 2 of the forward pa"
    ):
        design_of(message, "x.txt")
    message.dataflow_graph.kernels[0].config = 2
    message.dataflow_graph.kernels[18].config = 2
    with pytest.raises(UserError, match="'Loss_bwd': field 'config': found 2 against at least 3 of the backward pass"):
        design_of(message, "x.txt")


def test_a_message_without_anything() -> None:
    with pytest.raises(UserError, match=f"{WHERE}field 'dataflow_graph.kernels': found none against at least one"):
        design_of(schema.DSE(), "x.txt")
