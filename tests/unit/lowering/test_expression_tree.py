"""Expressions that are nested too deeply for Python end in one line, wherever they are read."""

import ast

import onnx
import pytest
from onnx import helper

from dfcompile.canonical_dag.annotation import _kernel
from dfcompile.errors import UserError
from dfcompile.frontend.onnx.origins import _SCOPES_KEY, _module
from dfcompile.lowering import apply_passes, lower_to_canonical
from dfcompile.lowering.expressions import MOST_LEVELS, affine, depth, expression_tree, substitute
from dfcompile.lowering.operators.base import _one_letter_names
from dfcompile.lowering.passes.fuse_elementwise import fuse_elementwise
from tests.onnx_nodes import TABLE
from tests.onnx_text import program_from_text

MANY = 20_000
NESTED = [
    "(" * MANY + "a" + ")" * MANY,
    "[" * MANY + "a" + "]" * MANY,
    "{" * MANY + "a" + "}" * MANY,
    "f(" * MANY + "a" + ")" * MANY,
    "-" * MANY + "a",
    "+".join("a" * MANY),
    "**".join("a" * MANY),
    "a" + ".a" * MANY,
    "-" * 3_000 + "a",
    "-" * (MOST_LEVELS + 1) + "a",
]


@pytest.mark.parametrize("source", NESTED)
def test_what_is_nested_too_deeply_is_refused_in_a_line(source: str) -> None:
    for read in (expression_tree, affine, lambda text: substitute(text, {"a": "b"})):
        with pytest.raises(UserError, match=r"^expression '.{0,61}': [^\n]+ against [^\n]+$") as caught:
            read(source)
        assert len(str(caught.value)) < 200

    assert _one_letter_names(source) is None


@pytest.mark.parametrize("source", NESTED)
def test_metadata_that_are_nested_too_deeply_say_nothing(source: str) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    node.metadata_props.append(onnx.StringStringEntryProto(key=_SCOPES_KEY, value=source))

    assert _module(node) is None


def test_a_kernel_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UserError, match="scope 's': kernel"):
        _kernel("s", "[" * MANY)


def test_as_many_levels_as_are_allowed_are_read() -> None:
    source = "-" * (MOST_LEVELS - 1) + "a"

    assert depth(expression_tree(source)) == MOST_LEVELS
    assert ast.unparse(expression_tree(substitute(source, {"a": "b"}))).count("-") == MOST_LEVELS - 1


@pytest.mark.parametrize("operator", ["Relu", "Neg"])
def test_a_long_chain_is_joined_as_far_as_it_can_be_read(operator: str) -> None:
    """A chain of 210 became an expression of 210 brackets, which Python's parser does not take."""
    chain = " ".join(f"x{at + 1} = {operator}(x{at})" for at in range(210))
    program = program_from_text(f"g (float[2] x0) => (float[2] x210) {{ {chain} }}")
    fused = apply_passes(lower_to_canonical(program, TABLE), [fuse_elementwise])

    assert len(fused.sdfg.start_state.nodes()) < 30
    assert apply_passes(fused, [fuse_elementwise]) is fused
