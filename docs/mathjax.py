"""Fetch MathJax from npm into docs/_static, so that formulas are drawn without a network.

One file draws everything as SVG and needs no fonts. Without npm the pages use MathJax from a public server instead.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "3.2.2"
FILE = Path(__file__).parent / "_static" / "mathjax" / "tex-svg-full.js"


def fetch() -> str:
    """Return why MathJax could not be fetched; nothing if it is there."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm was not found"
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", f"mathjax@{VERSION}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        packed = list(Path(folder).glob("*.tgz"))
        if done.returncode or not packed:
            return f"npm could not fetch mathjax@{VERSION}: {done.stderr.strip().splitlines()[-1:]}"
        with tarfile.open(packed[0]) as archive:
            member = archive.extractfile(f"package/es5/{FILE.name}")
            assert member is not None
            FILE.parent.mkdir(parents=True, exist_ok=True)
            FILE.write_bytes(member.read())
    return ""


if __name__ == "__main__" and not FILE.exists() and (reason := fetch()):
    sys.stderr.write(
        f"{reason}: the formulas of these pages will need a network connection. Install npm and run "
        "'make docs' again to include MathJax.\n"
    )
