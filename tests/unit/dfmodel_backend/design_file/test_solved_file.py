"""Solved files: what was solved comes back, and solving again changes nothing."""

from collections.abc import Iterator

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, Compatibility
from dfcompile.dfmodel_backend.design_file.message import parse_message, read_message, text_of, variant_of
from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.design_file.solved import solved_message
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from tests.locations import DESIGNS

SOLVED = DESIGNS / "solved_decode_ring16.txt"
OUTPUTS = ("sharding", "shard_outer_M", "shard_K", "shard_N", "communication_type", "communication_size")
EDGE_OUTPUTS = (
    *("buffer_depth", "tensor_size", "shard_tensor_size", "startName", "endName", "lane_stage_type"),
    "communication_size",
)


def solve_text(message: schema.DSE, compatibility: Compatibility) -> str:
    solution = solve_design(design_of(message, "x.txt"), DesignOptions(compatibility=compatibility))
    return text_of(solved_message(message, solution))


def without_outputs(message: schema.DSE) -> schema.DSE:
    bare = schema.DSE()
    bare.CopyFrom(message)
    for kernel in bare.dataflow_graph.kernels:
        kernel.ClearField("topological_number")
        variant = variant_of(kernel)
        for field in OUTPUTS:
            if field in variant.DESCRIPTOR.fields_by_name:
                variant.ClearField(field)
    for connection in bare.dataflow_graph.connections:
        for name in EDGE_OUTPUTS:
            connection.ClearField(name)
    return bare


def fields_of(message: Message, path: str = "") -> Iterator[tuple[str, object]]:
    """Every field, set or not, that is no message, with where it stands."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            yield f"{path}{field.name}", value
        elif field.is_repeated:
            for number, inner in enumerate(value):
                yield from fields_of(inner, f"{path}{field.name}[{number}].")
        elif message.HasField(field.name):
            yield from fields_of(value, f"{path}{field.name}.")


def test_a_published_solved_file_comes_back_field_by_field() -> None:
    """As the file stands: it states the size of what an edge exchanges as -0, which is equal to nothing, 0."""
    raw = text_format.Parse(SOLVED.read_text(), schema.DSE())
    bare = without_outputs(raw)
    solved = parse_message(solve_text(bare, ORIGINAL), "x.txt")

    expected, before, found = (dict(fields_of(message)) for message in (raw, bare, solved))
    asked = [name for name, value in expected.items() if before[name] != value]
    assert len(asked) >= 171
    assert [name for name in expected if found[name] != expected[name]] == []
    assert expected.keys() == found.keys()


def test_a_published_solved_file_comes_back_byte_for_byte() -> None:
    """The reader forgets signs of zeros: -0 is 0, and a field that is 0 is not written."""
    published = read_message(SOLVED)
    raw_lines = text_of(text_format.Parse(SOLVED.read_text(), schema.DSE())).splitlines()

    assert solve_text(without_outputs(published), ORIGINAL) == text_of(published)
    assert solve_text(published, ORIGINAL) == text_of(published)
    assert [line for line in raw_lines if line.strip() != "communication_size: -0.0"] == text_of(published).splitlines()
