"""The start of the one-file program: unpack once, then become it.

The process stays the same, so that LISTEN_PID, NotifyAccess=main and MAINPID stay true. It runs
on a bare Python 3.11 and imports nothing that is slow to import.
"""

import os
import sys

DIGEST = "@DIGEST@"
PAYLOAD = "payload.tar.gz"


def main():
    archive = os.path.realpath(sys.argv[0])
    if sys.version_info[:2] != (3, 11):
        _give_up(f"needs Python 3.11, and {sys.executable} is {sys.version.split()[0]}")
    try:
        program = _program(archive, _folder(os.environ))
    except OSError as error:
        _give_up(f"can't unpack: {error.strerror}: {error.filename}; set CACHE_DIRECTORY")
    environment = {**os.environ, "PYTHONPATH": program, "LLMGW_ARCHIVE": archive}
    command = [sys.executable, "-s", "-P", "-m", "llmgw", *sys.argv[1:]]
    os.execve(sys.executable, command, environment)


def _folder(environment):
    """systemd's CacheDirectory=, else the user's cache."""
    given = environment.get("CACHE_DIRECTORY", "").split(":")[0]
    if given:
        return given
    cache = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "llmgw")


def _program(archive, folder):
    """The program's folder; whoever unpacks first wins, and nobody sees half of it."""
    target = os.path.join(folder, DIGEST)
    if os.path.isdir(target):
        return target
    import shutil
    import tempfile

    os.makedirs(folder, mode=0o700, exist_ok=True)
    fresh = tempfile.mkdtemp(prefix="unpacking-", dir=folder)
    try:
        _unpack(archive, fresh, target)
        os.rename(fresh, target)
    except OSError:
        if not os.path.isdir(target):  # else another process was faster
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _unpack(archive, fresh, target):
    """Into `fresh`, compiled as if it lay in `target`: later starts find it ready."""
    import compileall
    import tarfile
    import zipfile
    import zlib

    try:
        with (
            zipfile.ZipFile(archive) as outer,
            outer.open(PAYLOAD) as payload,
            tarfile.open(fileobj=payload, mode="r|gz") as inner,
        ):
            inner.extractall(fresh)
    except (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error):
        _give_up(f"{archive} is damaged")
    compileall.compile_dir(fresh, quiet=2, stripdir=fresh, prependdir=target)


def _give_up(reason):
    print(f"llmgw: {reason}", file=sys.stderr)
    sys.exit(1)


main()
