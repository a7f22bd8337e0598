"""DFModel's set-up files, text and binary, mutated; judged by ``dfcompile SETUP``."""

from functools import cache
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dfcompile.dfmodel_backend.design_file.message import bytes_of, parse_message, text_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from tests.fuzz.command_line import run_command
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.model_mutations import NUMBERS, REALS, damaged_bytes
from tests.fuzz.outcome import Outcome
from tests.fuzz.text_mutations import mutated_text

FOLDER = Path(__file__).parents[1] / "data" / "dfmodel"
# Files whose solution takes a second are a part of the tests of solvers anyway.
SMALL = ("fft_a100_1024", "fft_h100_dgx1_1024", "mamba_scan_256k_rdu", "serve_gpt3_decode_genz_f10_1x")
MIDDLE = (
    "hpl_h100_2dtorus_1024",
    "dlrm_A_zionex_128",
    "llm_13B_rdu_dp16",
    "llm_175B_fwd_sramdram_mm",
    "solved_decode_ring16",
)


def mutated_setup(draw: Draw) -> Case:
    name = draw.choice(SMALL) if draw.chance(0.7) else draw.choice(MIDDLE)
    text = _text(name)
    if draw.chance(0.5):
        return Case(".txt", mutated_text(text, draw))
    message = parse_message(text, name)
    for _ in range(draw.integer(1, 3)):
        _change(message, draw)
    if draw.chance(0.5):
        return Case(".txt", text_of(message).encode())
    content = bytes_of(message)
    return Case(".pb", damaged_bytes(content, draw) if draw.chance(0.5) else content)


def judge_setup(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    show("dfcompile")
    words = [str(path), "--format", draw.choice(["table", "json"])]
    if draw.chance(0.3):
        words += ["--compat", "dfmodel"]
    if draw.chance(0.2):
        words += ["--sharding-objective", "time"]
    return run_command(words)


def _change(message: schema.DSE, draw: Draw) -> None:
    """Give a field of the message, or of one in it, another value, or clear it."""
    owner: Message = message
    while True:
        inner = [value for field, value in owner.ListFields() if field.type == FieldDescriptor.TYPE_MESSAGE]
        messages = [each for value in inner for each in (value if not isinstance(value, Message) else [value])]
        if not messages or (owner is not message and draw.chance(0.3)):
            break
        owner = draw.choice(messages)
    fields = [
        field
        for field in owner.DESCRIPTOR.fields
        if field.type != FieldDescriptor.TYPE_MESSAGE and not field.is_repeated
    ]
    if not fields:
        return
    field = draw.choice(fields)
    if draw.chance(0.15):
        owner.ClearField(field.name)
    elif field.type in {FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE}:
        setattr(owner, field.name, draw.choice(REALS))
    elif field.type == FieldDescriptor.TYPE_STRING:
        setattr(owner, field.name, draw.choice(["", "a", "x\ny", "\x1b[31m", "é", "CMN"]))
    elif field.type == FieldDescriptor.TYPE_BOOL:
        setattr(owner, field.name, draw.chance(0.5))
    else:
        number = draw.choice(NUMBERS) if draw.chance(0.5) else draw.integer(-1, 9)
        wide = field.type in {FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64}
        setattr(owner, field.name, number if wide else number % 2**31)


@cache
def _text(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
