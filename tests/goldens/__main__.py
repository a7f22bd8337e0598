"""``python -m tests.goldens``: writes the texts of all models anew; read what changes before it is committed."""

from tests.goldens.files import FOLDER, texts

for name, text in texts().items():
    (FOLDER / name).write_text(text)
