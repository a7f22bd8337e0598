"""What documents show is what happens."""

from pathlib import Path

import pytest

from tests.documents import DOCUMENTS, ROOT, shown_now


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_shows_what_its_commands_print(document: Path) -> None:
    text = document.read_text()

    assert "$ dfcompile " in text
    assert shown_now(text) == text, "run `python -m tests.documents` and look at the difference"
