"""Pairs of queries and keys: closed forms against counting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.language_models.model import Mask, Reach
from dfcompile.language_models.steps.batch import (
    chunked_batch,
    chunks_of,
    decode_batch,
    live,
    pairs,
    prefill_batch,
)

extents = st.integers(1, 40)
reaches = st.one_of(
    st.just(Reach()), extents.map(lambda w: Reach(Mask.WINDOW, w)), extents.map(lambda c: Reach(Mask.CHUNK, c))
)


def keys_of(reach: Reach, at: int) -> set[int]:
    """Keys that the query at a position sees, one by one."""
    return {
        key
        for key in range(at + 1)
        if reach.mask is Mask.FULL
        or (reach.mask is Mask.WINDOW and at - key < reach.extent)
        or (reach.mask is Mask.CHUNK and at // reach.extent == key // reach.extent)
    }


@given(reaches, st.integers(0, 90), st.integers(1, 60))
def test_trap_t14_pairs_and_live_tokens_are_those_that_are_counted(reach: Reach, past: int, new: int) -> None:
    sets = [keys_of(reach, at) for at in range(past, past + new)]

    assert pairs(reach, past, new) == sum(map(len, sets))
    assert live(reach, past, new) == len(set[int]().union(*sets))
    assert pairs(Reach(), past, new, causal=False) == new * (past + new)


@given(st.integers(1, 500), st.integers(1, 100), reaches)
def test_trap_t4_pieces_add_up_to_the_prompt(prompt: int, piece: int, reach: Reach) -> None:
    pieces = chunks_of(prompt, piece)

    assert sum(pairs(reach, one.past, one.new) for one in pieces) == pairs(reach, 0, prompt)
    assert sum(one.head_rows for one in pieces) == 1


def test_trap_t4_the_means_of_the_notebooks_chunk() -> None:
    piece, decodes = chunked_batch("8192:512:256").groups

    assert (piece.past, piece.new, piece.context) == (3975, 241, 4216)
    assert (decodes.context, decodes.count) == (8448, 15)
    assert len(chunks_of(8192, 241)) == 34
    assert pairs(Reach(), 0, 8192) == 33_558_528


def test_a_prompt_of_very_many_pieces_is_not_cut_to_be_counted() -> None:
    note, untimed = chunked_batch("1125899906842624:3:100").notes

    assert note.startswith("chunked: 11258999068427 pieces of 100 tokens")
    assert untimed.startswith("chunked: 11258999068427 pieces are not timed one by one")


def test_trap_t4_every_chunk_of_a_prompt_is_a_step() -> None:
    batch = chunked_batch("8192:512:256")
    pieces, beside = zip(*(chunk.groups for chunk in batch.chunks), strict=True)

    assert (len(batch.chunks), batch.groups[0].new, pieces[-1].new) == (34, 241, 239)
    assert sum(pairs(Reach(), piece.past, piece.new) for piece in pieces) == 8192 * 8193 // 2
    assert set(beside) == {batch.groups[1]}
    assert [piece.head_rows for piece in pieces] == [0] * 33 + [1]
    assert not chunked_batch("1000000:1:64").chunks
    assert "at most 1024" in chunked_batch("1000000:1:64").notes[1]


def test_batches_of_mixed_lengths() -> None:
    batch = prefill_batch("1024x2,8192")

    assert (batch.tokens, batch.sequences, batch.head_rows, batch.longest) == (10_240, 3, 3, 8192)
    assert decode_batch("8448x256").is_decode
    assert chunked_batch("241@3975+8448x15").groups == chunked_batch("8192:512:256").groups
    assert prefill_batch("8x2", all_rows=True).head_rows == 16


@pytest.mark.parametrize("text", ["0", "8x0", "-1", "8x", "1e3", "", "8y2", "9" * 30])
def test_bad_lengths_are_one_line(text: str) -> None:
    with pytest.raises(UserError, match="--prefill: found"):
        prefill_batch(text)
    with pytest.raises(UserError, match="--decode: found"):
        decode_batch(text)
    with pytest.raises(UserError, match="found"):
        chunked_batch(text + "+8x1")
