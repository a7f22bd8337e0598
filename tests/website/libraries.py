"""Renews the libraries of pages with npm: ``python -m tests.website.libraries`` after a version in libraries.json.

Fetches the versions that dfcompile/page/vendor/libraries.json names, and writes the files, licences and hashes anew.
"""

import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

VENDOR = Path(__file__).parent.parent.parent / "dfcompile" / "page" / "vendor"


def main() -> None:
    """Fetch each library."""
    listed = VENDOR / "libraries.json"
    libraries: dict[str, dict[str, str]] = json.loads(listed.read_text())
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm: not on PATH; it is needed to fetch libraries")
    for name, library in libraries.items():
        with TemporaryDirectory() as folder:
            words = [npm, "pack", "--silent", f"{library['package']}@{library['version']}"]
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            (packed,) = Path(folder).glob("*.tgz")
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            package = Path(folder) / "package"
            content = (package / library["file"]).read_bytes()
            shutil.copyfile(package / "LICENSE", VENDOR / library["licence_file"])
        (VENDOR / name).write_bytes(content)
        library["sha256"] = hashlib.sha256(content).hexdigest()
        print(f"{name}: {library['package']} {library['version']}, {len(content):,} bytes")
    listed.write_text(json.dumps(libraries, indent=2) + "\n")


if __name__ == "__main__":
    main()
