"""Build the modules of `compiled.txt` as one group of extensions, by mypyc and a C compiler.

`LLMGW_PURE` in the environment decides: 1 compiles nothing, 0 fails where nothing can be compiled.
Without it a machine that lacks a compiler, the headers of its Python, or anything else that it
takes gets the modules as they are written, and one line that says why.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.util import source_hash
from io import StringIO
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "llmgw"
GROUP = f"{PACKAGE}.native"
LIBRARY = f"{GROUP}__mypyc"  # what mypyc calls the library that the group's modules share
RECORD = f"{PACKAGE}/compiled.sums"  # read by llmgw/compiled.py at each start
GENERATED = "build/native"  # where the C goes
PROBE = "#include <Python.h>\nint main(void) { return 0; }\n"

# The packages that the program uses are not there while it is built for a wheel, and are while it
# is built in place: without any of them both compile the same, in a third of the time. A class on
# a base of theirs can't be compiled then: mypyc would leave the base out. Faults in modules that
# are not compiled, and may come of that, are for `make types` to tell.
MYPY = (
    *("--config-file=", "--no-site-packages", "--disallow-subclassing-any"),
    *("--ignore-missing-imports", "--follow-imports=silent"),
)


def listed() -> list[str]:
    """The paths of the modules to compile, in Python or in C."""
    lines = (ROOT / "packaging" / "compiled.txt").read_text("utf-8").splitlines()
    return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def extensions() -> list[Extension]:
    """By name alone: to find their sources takes seconds, and `setup.py` also runs to be asked."""
    if os.environ.get("LLMGW_PURE") == "1":
        return []
    if lack := what_lacks():
        give_up(lack)
        return []
    found = [Extension(LIBRARY, sources=[])]
    for path in listed():
        name, suffix = os.path.splitext(path)
        sources = [path] if suffix == ".c" else []
        found.append(Extension(name.replace("/", "."), sources=sources))
    return found


def what_lacks() -> str | None:
    """Whatever keeps C from being compiled here, found by compiling some."""
    from distutils.ccompiler import new_compiler  # which setuptools brings along
    from distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    command = getattr(compiler, "compiler_so", None)
    if command and not shutil.which(command[0]):
        return f"there is no C compiler ({command[0]})"
    with tempfile.TemporaryDirectory() as folder, silence():
        probe = Path(folder) / "probe.c"
        probe.write_text(PROBE)
        headers = sysconfig.get_paths()["include"]
        try:
            compiler.compile([str(probe)], output_dir=folder, include_dirs=[headers])
        except CompileError:
            return f"the headers of this Python are not there, or not of use ({headers}/Python.h)"
    return None


@contextmanager
def silence() -> Iterator[None]:
    """A compiler says on the descriptor why it fails; what follows from it is told in a line."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def give_up(reason: str) -> None:
    """Raises `SystemExit` where it must be compiled."""
    if os.environ.get("LLMGW_PURE") == "0":
        raise SystemExit(f"llmgw: not compiled: {reason}")
    print(f"llmgw: warning: not compiled, and slower for it: {reason}", file=sys.stderr)


class BuildNative(build_ext):
    """All of the group or nothing: a part of it would call into what is not there."""

    def run(self) -> None:
        if not self.extensions:
            return
        folders = [Path(self.build_lib), *([ROOT] if self.inplace else [])]
        sums = [f"{sum_of(ROOT / path)} {path.removeprefix(PACKAGE + '/')}\n" for path in listed()]
        forget(folders, keep={one._file_name for one in self.extensions})
        try:
            self.find_sources()
            super().run()
        except Exception as error:  # noqa: BLE001 - a fault of mypyc's is one, too
            forget(folders)
            self.distribution.ext_modules, self.extensions = [], []
            give_up(" ".join(str(error).split()) or type(error).__name__)
            return
        for folder in folders:
            (folder / RECORD).write_text("".join(sums), "utf-8")

    def find_sources(self) -> None:
        found = {extension.name: extension for extension in write_c()}
        for extension in self.extensions:
            if extension.sources:  # written by hand
                continue
            source = found.pop(extension.name)
            for name in ("sources", "include_dirs", "depends"):
                setattr(extension, name, getattr(source, name))
            # what a newer compiler warns of is no reason to go without
            extension.extra_compile_args = [*source.extra_compile_args, "-Wno-error"]

    def build_extensions(self) -> None:
        """Without the folders of the Python that builds: none of its libraries is linked, and the
        result may be taken to another machine."""
        linker = getattr(self.compiler, "linker_so", [])
        self.compiler.linker_so = [one for one in linker if not one.startswith("-Wl,-rpath")]
        super().build_extensions()


def write_c() -> list[Extension]:
    """Raises `CompileError` with the first fault in a module, and whatever mypyc does."""
    from mypyc.build import mypycify

    said = StringIO()
    options = {"group_name": GROUP, "opt_level": "2", "debug_level": "0"}
    try:
        with redirect_stdout(said):
            modules = (path for path in listed() if path.endswith(".py"))
            return mypycify([*MYPY, *modules], target_dir=GENERATED, **options)
    except SystemExit as exit:
        faults = (line for line in said.getvalue().splitlines() if ": error: " in line)
        raise CompileError(next(faults, f"mypyc: {exit}")) from exit


def sum_of(path: Path) -> str:
    """What Python itself tells sources by (PEP 552), for `llmgw/compiled.py`."""
    return source_hash(path.read_bytes()).hex()


def forget(folders: Sequence[Path], keep: Container[str] = ()) -> None:
    """Take away what was built, but for the files to `keep`. What is left of a module that is no
    longer listed would be imported, and packed."""
    for folder in folders:
        (folder / RECORD).unlink(missing_ok=True)
        for path in (folder / PACKAGE).rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
            if str(path.relative_to(folder)) not in keep:
                path.unlink()
