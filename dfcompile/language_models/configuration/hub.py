"""The hub's cache on this machine and, only if it is asked for, the hub: a model's ``config.json``."""

import os
import re
from pathlib import Path

from dfcompile.errors import UserError

FILE_NAME = "config.json"
_FOLDER = "models--"
_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
_REVISION = re.compile(r"\w{1,64}", re.ASCII)
_YES = ("1", "ON", "YES", "TRUE")


def is_on_hub(asked: str) -> bool:
    """Whether this may be a model's name ``owner/name``."""
    return _NAME.fullmatch(asked) is not None


def cache_home() -> Path:
    """Return the folder of the hub's cache, as its own tools find it."""
    named = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return Path(named) if named else Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"


def cache_folder(name: str) -> Path:
    """Return the folder that the cache has, or would have, of a model."""
    return cache_home() / f"{_FOLDER}{name.replace('/', '--')}"


def model_name(folder: Path) -> str:
    """Return the model's name of a folder of the cache: ``models--owner--name`` is ``owner/name``."""
    return folder.name.removeprefix(_FOLDER).replace("--", "/", 1)


def cached_in(folder: Path) -> Path | None:
    """Return the configuration in a model's folder of the cache: of its main revision, else of the newest snapshot."""
    main = folder / "refs" / "main"
    if main.is_file():
        revision = main.read_text(encoding="utf-8", errors="replace").strip()
        named = folder / "snapshots" / revision / FILE_NAME
        if _REVISION.fullmatch(revision) and named.is_file():
            return named
    files = (file for file in folder.glob(f"snapshots/*/{FILE_NAME}") if file.is_file())
    return max(files, key=lambda file: (file.stat().st_mtime, str(file)), default=None)


def downloaded(name: str) -> Path:
    """Download a model's configuration into the hub's cache.

    Raises:
        UserError: the network is forbidden (``HF_HUB_OFFLINE``), huggingface_hub is not installed, or the hub does not
            give the file, which may be because it has none, needs a licence accepted first, or cannot be reached.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in _YES:
        raise UserError(f"configuration {name!r}: --allow-download against HF_HUB_OFFLINE, which forbids it")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise UserError(
            f"configuration {name!r}: --allow-download needs huggingface_hub (pip install huggingface_hub)"
        ) from error
    try:
        return Path(hf_hub_download(name, FILE_NAME, cache_dir=str(cache_home())))
    except (OSError, ValueError) as error:  # the package's own errors are some of these
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(
            f"configuration {name!r}: cannot be downloaded (put its {FILE_NAME} anywhere, name it): {reason[:200]}"
        ) from error
