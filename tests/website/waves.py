"""The picture of waves in docs/hardware.md: ``python -m tests.website.waves`` draws it anew, by Icarus or Verilator.

``make screenshots`` does that as well. A circuit of values is simulated, and signals of three of its tasks are drawn.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from xml.sax.saxutils import escape

import numpy as np

from dfcompile.cli.main import main as dfcompile
from tests.locations import ROOT

PICTURE: Final = ROOT / "docs" / "screenshots" / "waves.svg"
MODEL: Final = """
import torch


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def model() -> torch.nn.Module:
    torch.manual_seed(2)
    return Layer()


def example_inputs() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(1, 4),)
"""
# What is drawn, of the first of three equal tasks: label, signal of its family, and the lowest bit. Of its words those
# of the first input of all tasks come first, then those of the second.
ROWS: Final = (
    ("product reads", "t_linear_matmul_columns_pull", 0),
    ("  element of x", "t_linear_matmul_columns_words", 0),
    ("  weight", "t_linear_matmul_columns_words", 96),
    ("product writes", "t_linear_matmul_columns_push", 0),
    ("  sum", "t_linear_matmul_columns_value", 0),
    ("bias reads", "t_linear_bias_pull", 3),
    ("  sum", "t_linear_bias_words", 0),
    ("  bias", "t_linear_bias_words", 96),
    ("bias writes", "t_linear_bias_push", 0),
    ("  value", "t_linear_bias_value", 0),
)
_LEFT, _CYCLE, _ROW, _HIGH = 130, 84, 30, 18  # pixels: of labels, of a cycle, from row to row, of a wave

Digits = str  # of a signal, the highest bit first


def cycles_of(vcd: str) -> Mapping[str, Sequence[Digits]]:
    """Return what each signal of the first circuit is in each cycle: at the rise of the clock that ends the cycle."""
    names: dict[str, str] = {}
    widths: dict[str, int] = {}
    header, _, changes = vcd.partition("$enddefinitions $end")
    outer = dict(map(reversed, re.findall(r"\$var wire +1 (\S+) (clk|go) ", header.partition("circuit_0")[0])))
    with_memory = header.partition("$scope module circuit_0 $end")[2]
    of_circuit = with_memory.partition("$scope module circuit $end")[2].partition("$scope")[0]
    for width, sign, name in re.findall(r"\$var \w+ +(\d+) (\S+) (\w+)", of_circuit):
        names[name], widths[sign] = sign, int(width)
    now = {sign: "x" * width for sign, width in widths.items()} | {outer["go"]: "0"}
    known: list[dict[str, Digits]] = []
    for digits, vector, bit, scalar in re.findall(r"^(?:b(\w+) (\S+)|([01xz])(\S+))$", changes, re.MULTILINE):
        value, sign = (digits, vector) if digits else (bit, scalar)
        if sign == outer["clk"] and value == "1" and now[outer["go"]] == "1":
            known.append(dict(now))
        if sign in now:
            now[sign] = value.rjust(len(now[sign]), "0" if value[0] in "01" else value[0])
    return {name: [state[sign] for state in known] for name, sign in names.items()}


def drawn(vcd: str) -> str:
    """Return the picture of a circuit's signals, cycle by cycle, as SVG."""
    signals = cycles_of(vcd)
    count = len(signals["go"]) - 1  # in the last one all is over
    size = _LEFT + count * _CYCLE + 10, (len(ROWS) + 1) * _ROW + 10
    box = f'width="{size[0]}" height="{size[1]}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect {box} fill="white"/>',
    ]
    for cycle in range(count):
        x = _LEFT + cycle * _CYCLE
        lines.append(f'<path d="M{x} 24V{size[1] - 6}" stroke="#dddddd"/>')
        lines.append(f'<text x="{x + _CYCLE / 2}" y="18" text-anchor="middle" fill="#555555">cycle {cycle}</text>')
    for row, (label, name, lowest) in enumerate(ROWS):
        y = (row + 2) * _ROW - 6
        lines.append(f'<text x="8" y="{y - 4}" xml:space="preserve">{escape(label)}</text>')
        lines += _row([digits[::-1][lowest:] for digits in signals[name][:count]], y, is_value=label.startswith(" "))
    return "\n".join((*lines, "</svg>", ""))


def _row(lowest_first: Sequence[Digits], y: int, *, is_value: bool) -> Iterator[str]:
    if not is_value:
        levels = [y - _HIGH * (digits[0] == "1") for digits in lowest_first]
        path = "".join(f"V{level}h{_CYCLE}" for level in levels)
        yield f'<path d="M{_LEFT} {levels[0]}{path}" fill="none" stroke="#1f5fa8" stroke-width="2"/>'
        return
    for cycle, digits in enumerate(lowest_first):
        word = digits[:32][::-1]
        x = _LEFT + cycle * _CYCLE
        text = "" if set(word) - {"0", "1"} else f"{np.array(int(word, 2), np.uint32).view(np.float32):.4f}"
        fill = "#eef3fa" if text else "#eeeeee"
        box = f'x="{x + 2}" y="{y - _HIGH}" width="{_CYCLE - 4}" height="{_HIGH}"'
        yield f'<rect {box} fill="{fill}" stroke="#9bb4d3"/>'
        yield f'<text x="{x + _CYCLE / 2}" y="{y - 5}" text-anchor="middle">{text}</text>'


def picture() -> str:
    """Return the picture of the waves of a circuit that is written and simulated for that."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "layer.py").write_text(MODEL)
        circuits, waves = str(folder / "circuits"), folder / "waves.vcd"
        for words in (
            [str(folder / "layer.py"), "--pes", "4", "--emit", "rtl-values", circuits],
            ["rtl", circuits, "--waves", str(waves)],
        ):
            if dfcompile(words):
                raise SystemExit(f"dfcompile {' '.join(words)} failed")
        return drawn(waves.read_text())


if __name__ == "__main__":
    PICTURE.write_text(picture())
