"""Build `dist/llmgw`: one executable for a machine with Python 3.11 and nothing from PyPI.

A zip with a `#!` line before it, which Python runs: it holds `unpack.py` and everything else as
one compressed archive. Two builds of one commit are the same to the byte.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHEBANG = b"#!/usr/bin/env -S python3 -sE\n"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold
# What differs from one installation to the next, or is of no use without pip.
LEFT_OUT = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist" / "llmgw")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "onefile")
    arguments = parser.parse_args()
    site = install(arguments.work)
    describe(site)
    payload = pack(site)
    write(arguments.output, payload)
    size = arguments.output.stat().st_size
    code = "compiled" if (site / "llmgw" / "compiled.sums").exists() else "interpreted"
    print(f"{arguments.output}: {size / 1e6:.1f} MB, {code}, sha256 {digest_of(arguments.output)}")
    return 0


def install(work: Path) -> Path:
    """The program and all it needs in one folder, as the pinned wheels have it."""
    shutil.rmtree(work, ignore_errors=True)
    for folder in (ROOT / "build").glob("lib*"):  # an earlier build's modules
        shutil.rmtree(folder)
    site = work / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    options = ["--target", str(site), "--no-compile", "-c", str(ROOT / "constraints.txt")]
    extra = f"{ROOT}[postgres]"
    subprocess.run([*pip, *options, "--only-binary", ":all:", extra], check=True)
    shutil.rmtree(site / "bin", ignore_errors=True)
    for path in site.rglob("*"):
        if path.name in LEFT_OUT and path.parent.name.endswith(".dist-info"):
            path.unlink()
    return site


def describe(site: Path) -> None:
    """Which commit this is, for `--version`."""
    build = {
        "commit": git("rev-parse", "--short=12", "HEAD"),
        "date": git("log", "-1", "--format=%cs"),
    }
    if git("status", "--porcelain", "--untracked-files=no"):
        build["commit"] += "+changes"
    (site / "llmgw" / "build.json").write_text(json.dumps(build) + "\n")


def git(*words: str) -> str:
    found = subprocess.run(
        ["git", "-C", str(ROOT), *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip()


def pack(site: Path) -> bytes:
    """The folder as a compressed archive without a trace of when and where it was made."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in sorted(site.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                add(archive, path, site)
    return packed.getvalue()


def add(archive: tarfile.TarFile, path: Path, site: Path) -> None:
    entry = tarfile.TarInfo(str(path.relative_to(site)))
    entry.size = path.stat().st_size
    entry.mode = 0o644
    with path.open("rb") as content:
        archive.addfile(entry, content)


def write(output: Path, payload: bytes) -> None:
    digest = hashlib.sha256(payload).hexdigest()[:16]
    start = (ROOT / "packaging" / "unpack.py").read_text().replace("@DIGEST@", digest)
    output.parent.mkdir(parents=True, exist_ok=True)
    fresh = output.with_suffix(".new")
    with fresh.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "a", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py", EPOCH), start)
            archive.writestr(zipfile.ZipInfo("payload.tar.gz", EPOCH), payload)
    fresh.chmod(0o755)
    fresh.replace(output)


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
