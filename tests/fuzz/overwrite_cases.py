"""Outputs that are inputs, by any name: judged by whether every command refuses, and leaves its inputs as they are."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dfcompile.host.outputs import MARKER
from tests.fuzz.command_inputs import write_inputs
from tests.fuzz.command_line import Ran, ran
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict

PAGE, PICTURES = ("-o", "--html"), ("--gantt", "--trace")
FOLDERS = tuple(f"--emit {kind}" for kind in ("onnx", "library", "maps", "canonical", "schedule", "rtl"))
LLM = "llm --decode 64 --config"
SHEETS = ("d.csv", "d.tsv", "d.toml", "d.json", "d.xlsx")


@dataclass(frozen=True, slots=True)
class Command:
    """A command that reads files.

    Attributes:
        words: of it, without what it writes.
        inputs: that it reads, from the folder in which it runs.
        files: options that write a file.
        folders: options that write a folder.
    """

    words: str
    inputs: tuple[str, ...]
    files: tuple[str, ...] = PAGE
    folders: tuple[str, ...] = ()


COMMANDS: Sequence[Command] = (
    Command("m/m.onnx --pes 2 --expand published", ("m/m.onnx", "m/data/w.bin"), (*PAGE, *PICTURES), FOLDERS),
    Command("m/m.onnx --pes 2 --expand published --system s.yaml", ("s.yaml",), (*PAGE, *PICTURES), FOLDERS),
    Command("p/code.py --pes 2 --expand published", ("p/code.py", "p/helper.py", "p/n.npy"), PAGE, FOLDERS),
    Command("bounds m/m.onnx --system s.yaml", ("m/m.onnx", "m/data/w.bin", "s.yaml"), (*PAGE, "--svg")),
    Command("bounds --gemm 4,4,4 --system s.yaml", ("s.yaml",), (*PAGE, "--svg")),
    *(Command(f"schedule g.{form} --pes 2", (f"g.{form}",), (*PAGE, *PICTURES)) for form in ("dag", "json")),
    Command(
        "explore m/m.onnx --pes 2 --on-chip-memory 1 --jobs 1 --expand MatMul=mv --system s.yaml",
        ("m/m.onnx", "m/data/w.bin", "s.yaml"), (*PAGE, "--cache"),
    ),
    Command("explore p/code.py --pes 2 --on-chip-memory 1 --jobs 1", ("p/code.py", "p/helper.py", "p/n.npy"),
            (*PAGE, "--cache")),
    Command("explore m/m.onnx --pes 2 --on-chip-memory 1 --jobs 1 --cache c.cache", ("c.cache",), PAGE),
    Command("compare a.json b.json", ("a.json", "b.json")),
    *(Command(f"{LLM} l/config.json --system {sheet}", ("l/config.json", sheet)) for sheet in SHEETS),
    Command(f"{LLM} l --system s.yaml --expert-histogram h.txt", ("l/config.json", "s.yaml", "h.txt")),
    Command(f"{LLM} l --system h100-sxm --efficiency e.json --map", ("l/config.json", "e.json")),
    Command(f"{LLM} l/config.json --system d.csv:one --sweep batch=1,2", ("d.csv",)),
    *(Command(f"t/t.{form}", (f"t/t.{form}",), ("--html",), ("-o",)) for form in ("txt", "pb")),
)  # fmt: skip


def drawn_overwrite(draw: Draw) -> Case:
    """Return which command is to write over which of its inputs, by which name."""
    command = draw.choice(COMMANDS)
    name = draw.choice(command.inputs)
    options = [*command.files, *(option for option in command.folders if "/" in name)]
    option = draw.choice(options)
    ways = sorted(set(_WAYS) - {"hard link"}) if option in command.folders else sorted(_WAYS)
    return Case(".json", json.dumps([command.words, name, option, draw.choice(ways)]).encode())


def judge_overwrite(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Run a command twice: with an output that is an input, and with another one."""
    words, name, option, way = json.loads(case.content)
    command = next(each for each in COMMANDS if each.words == words)
    show("dfcompile")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            return _judged(command, name, option, way, draw)
        finally:
            os.chdir(here)


def _judged(command: Command, name: str, option: str, way: str, draw: Draw) -> Outcome:
    write_inputs(Path())
    source = Path(name).parent if option in command.folders else Path(name)
    if option in command.folders:
        (source / MARKER).touch()  # as an earlier run has left it
    target = _WAYS[way](source, source.suffix)
    before = _contents(Path())
    refused = _run(command, option, target, draw)
    after = _contents(Path())
    fresh = Path("fresh", f"new{source.suffix}")
    fresh.parent.mkdir()
    taken = _run(command, option, str(fresh), draw)
    faults = {
        "an input is changed": any(after.get(file) != content for file, content in before.items()),
        "a draft is left": len(after) > len(before) + 1,
        "not refused": refused.outcome.verdict is not Verdict.REFUSED,
        "refused for something else": "found a file that this run reads against another file" not in refused.err,
        "another output is refused": taken.outcome.verdict is not Verdict.ACCEPTED or not fresh.exists(),
        "an input is changed beside another output": any(
            _contents(Path()).get(file) != content for file, content in before.items() if content
        ),
    }
    for run in (refused, taken):
        if run.outcome.verdict.is_finding:
            return run.outcome
    for fault, is_so in faults.items():
        if is_so:
            cause = f"overwrites: {fault}: {command.words.split()[0]} {option} {name}"
            return Outcome(Verdict.BUG, cause, f"by {way}\n{refused.err}\n{taken.err}")
    return taken.outcome


def _run(command: Command, option: str, target: str, draw: Draw) -> Ran:
    """Run a command, sometimes with another output as well."""
    words = [*command.words.split(), *option.split(), target]
    other = draw.choice([each for each in ("--html", "-o") if each in command.files or each == "--html"])
    if other != option and draw.chance(0.3):
        words += [other, f"other{draw.integer(0, 10**9)}"]
    return ran(words)


def _contents(folder: Path) -> Mapping[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def _linked(source: Path, suffix: str, link: Callable[[Path, Path], None]) -> str:
    Path("links").mkdir()
    link(source.resolve(), Path("links", f"other{suffix}"))
    return f"links/other{suffix}"


def _in_linked_folder(source: Path, _suffix: str) -> str:
    Path("beside").symlink_to(source.parent.resolve())
    return f"beside/{source.name}"


_WAYS: Mapping[str, Callable[[Path, str], str]] = {
    "itself": lambda source, _suffix: str(source),
    "dots": lambda source, _suffix: f"./{source.parent}/.//{source.name}",
    "up and down": lambda source, _suffix: f"../{Path.cwd().name}/{source}",
    "absolute": lambda source, _suffix: str(source.resolve()),
    "process": lambda source, _suffix: f"/proc/self/cwd/{source}",
    "symbolic link": lambda source, suffix: _linked(source, suffix, lambda file, link: link.symlink_to(file)),
    "link to a link": lambda source, suffix: _linked(
        Path(_linked_once(source)), suffix, lambda file, link: link.symlink_to(file)
    ),
    "hard link": lambda source, suffix: _linked(source, suffix, lambda file, link: link.hardlink_to(file)),
    "linked folder": _in_linked_folder,
}


def _linked_once(source: Path) -> str:
    Path("first").symlink_to(source.resolve())
    return "first"
