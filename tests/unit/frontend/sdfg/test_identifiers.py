"""Safe identifiers: valid in C++ and Python, unique, near to the name."""

import keyword

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.frontend.sdfg.identifiers import RESERVED, is_safe, safe_identifiers

texts = st.text(st.sampled_from("aZ_0.:/ é-"), max_size=6) | st.sampled_from(sorted(RESERVED))


@given(st.lists(texts, max_size=12))
def test_identifiers_are_safe_and_unique(names: list[str]) -> None:
    chosen = safe_identifiers(names)

    assert list(chosen) == list(dict.fromkeys(names))
    assert len(set(chosen.values())) == len(chosen)
    for name, identifier in chosen.items():
        assert identifier.isascii()
        assert identifier.isidentifier()
        assert identifier not in RESERVED
        assert not identifier.startswith("_")
        assert identifier == name or not is_safe(name)


def test_reserved_words_cover_both_languages() -> None:
    assert RESERVED.issuperset(keyword.kwlist)
    assert RESERVED.issuperset(["tanh", "double", "template", "register", "y0", "INFINITY"])
    assert not RESERVED.intersection(["x", "input", "conv1_weight"]) - {"input"}
