"""Programs of statements drawn at random give what NumPy gives: parts, maps, products, sums, choices, in any order."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import ReadOptions, read_model, reference_answer
from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import checked_maps
from tests.written_programs import HEAD

TABLE = registered_expansions()
ARRAYS = "ABCD"  # of 4 × 4


def statement(draw: random.Random) -> str:
    """Return a statement on whole arrays or parts of them."""
    t, a, b, c = (draw.choice(ARRAYS) for _ in range(4))
    op, size = draw.choice("+-*"), draw.randrange(1, 3)
    i, j, k, m, x, y = (draw.randrange(5 - size) for _ in range(6))
    forms = (
        f"{t}[:] = {a} {op} {b}",
        f"{t}[:] = {a} @ {b}",
        f"{t}[:] = np.transpose({a}) {op} {b}",
        f"{t}[:] = np.where({a} > 0, {b}, {c})",
        f"{t}[:] = 0.5",
        f"{t}[:] += {a}",
        f"{t}[1:3] = {a}[0:2]",
        f"{t}[::2, 1:] = {a}[1::2, :3] {op} 2.0",
        f"{t}[{i}] = np.sum({a}, axis={draw.randrange(2)})",
        f"{t}[:, {i}] = {a}[{j}] {op} {b}[:, {k}]",
        f"{t}[{i}, {j}] = {a}[{k}, {m}] {op} {b}[0, 1]",
        (
            f"{t}[{i}:{i + size}, {j}:{j + size}] = {a}[{k}:{k + size}, {m}:{m + size}] "
            f"{op} {b}[{x}:{x + size}, {y}:{y + size}]"
        ),
    )
    return f"    {draw.choice(forms)}\n"


def mapped(draw: random.Random) -> str:
    """Return a map around a few operations, whose iterations are independent."""
    t = draw.choice(ARRAYS)
    sources = [name for name in ARRAYS if name != t]
    text, own = "    for n in dace.map[0:N]:\n", list[str]()
    for step in range(draw.randrange(1, 4)):
        known = [f"{draw.choice(sources)}{draw.choice(['[n]', '[:, n]', '[N - 1 - n]'])}", *own]
        value = f"{draw.choice(known)} {draw.choice('+-*')} {draw.choice(known)}"
        forms = (value, f"{draw.choice(sources)} @ ({value})", f"np.sum({value}) * {draw.choice(known)}")
        own.append(f"v{step}")
        text += f"        v{step} = {draw.choice(forms)}\n"
    last = own[-1]
    ends = (f"{t}[n] = {last}", f"{t}[:, n] = {last}", f"{t}[n, 1:3] = {last}[0:2]", f"{t}[n] += {last}")
    return f"{text}        {draw.choice(ends)}\n"


def written(seed: int) -> str:
    """Return a program."""
    draw = random.Random(seed)
    body = "".join(mapped(draw) if draw.random() < 0.4 else statement(draw) for _ in range(draw.randrange(1, 6)))
    arguments = ", ".join(f"{name}: dace.float64[N, N]" for name in ARRAYS)
    returned = draw.choice(["", "    return np.sum(A * B), C @ D\n", "    return A + 1\n"])
    return f"{HEAD}@dace.program\ndef given({arguments}):\n{body}{returned}"


@given(st.integers(0, 2**32))
@examples(20)
def test_random_programs(seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"given{seed}.py"  # Python keeps the lines of a file by its name
        path.write_text(written(seed))
        model = read_model(path, ReadOptions(dims={"N": 4}))
    maps = checked_maps(lower_to_nests(lower_to_canonical(model.program, TABLE), TABLE))
    extract(maps.sdfg, parameters=tuple(maps.parameters))
    inputs = model.example_feeds(1)

    found = interpret(maps, {port.name: value for port, value in zip(maps.inputs, inputs, strict=True)})

    for port, value in zip(maps.outputs, reference_answer(model, inputs).outputs, strict=True):
        np.testing.assert_allclose(found[port.name].astype(float), value.astype(float), rtol=1e-8, atol=1e-8)
