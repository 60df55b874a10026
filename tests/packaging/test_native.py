"""Modules are compiled where that can be done, all of them or none, and it is said why not."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from llmgw import compiled

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "packaging" / "compiled.txt"
ONE = """
def double(number: int) -> int:
    return number * 2
"""
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
TAKES_C = pytest.mark.skipif(
    not shutil.which(COMPILER) or not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="a C compiler and Python.h are not there",
)


def paths():
    return [line for line in LIST.read_text().splitlines() if not line.startswith("#")]


def test_the_list_is_sorted_and_of_modules_that_are_there():
    assert paths() == sorted(set(paths()))
    assert [path for path in paths() if not (ROOT / path).is_file()] == []


def test_the_build_takes_the_compiler_that_is_tested():
    (required,) = (
        one
        for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
        if one.startswith("mypy")
    )

    assert required in (ROOT / "constraints.txt").read_text().splitlines()


def python(code, **environment):
    """Run in a process of its own: setuptools changes the one it is imported in."""
    inherited = {name: value for name, value in os.environ.items() if name != "LLMGW_PURE"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import native as n, json; {code}"],
        env={**inherited, "PYTHONPATH": str(ROOT / "packaging"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_builder_and_guard_agree(tmp_path):
    source = tmp_path / "module.py"
    source.write_text(ONE)

    said = python(
        "from pathlib import Path; "
        f"print(json.dumps([n.LIBRARY, n.RECORD, n.sum_of(Path({str(source)!r}))]))"
    )

    library, record, total = json.loads(said.stdout)
    assert library == f"llmgw.{compiled.LIBRARY}"
    assert record == f"llmgw/{compiled.RECORD}"
    assert total == compiled.source_hash(source.read_bytes()).hex()


def test_without_a_compiler_there_is_a_line_and_no_extension():
    said = python("print(n.extensions())", CC="no-such-compiler")

    assert said.stdout == "[]\n"
    (line,) = said.stderr.splitlines()
    assert line.endswith("slower for it: there is no C compiler (no-such-compiler)")


def test_without_headers_there_is_a_line_and_no_extension(tmp_path):
    """A compiler that fails at whatever it is given stands for one that does not find them."""
    failing = tmp_path / "cc"
    failing.write_text("#!/bin/sh\necho >&2 'Python.h: No such file'\nexit 1\n")
    failing.chmod(0o755)

    said = python("print(n.extensions())", CC=str(failing))

    assert said.stdout.splitlines()[-1] == "[]"
    (line,) = said.stderr.splitlines()
    assert re.search(r"the headers of this Python are not there, .*Python\.h\)$", line)


def test_it_can_be_told_to_fail_instead():
    said = python("print(n.extensions())", CC="no-such-compiler", LLMGW_PURE="0")

    assert said.returncode != 0
    assert said.stderr == "llmgw: not compiled: there is no C compiler (no-such-compiler)\n"


def test_it_can_be_told_not_to_compile():
    said = python("print(n.extensions())", LLMGW_PURE="1")

    assert (said.stdout, said.stderr) == ("[]\n", "")


@pytest.fixture
def tree(tmp_path):
    """A program of one module, which is built as the real one is."""
    (tmp_path / "packaging").mkdir()
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copy(ROOT / "packaging" / "native.py", tmp_path / "packaging")
    (tmp_path / "packaging" / "compiled.txt").write_text("# one\nllmgw/one.py\n")
    (tmp_path / "llmgw").mkdir()
    shutil.copy(ROOT / "llmgw" / "compiled.py", tmp_path / "llmgw")
    (tmp_path / "llmgw" / "__init__.py").write_text("import llmgw.compiled\n")
    (tmp_path / "llmgw" / "one.py").write_text(ONE)
    return tmp_path


def in_tree(tree, *words, pure=""):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *words],
        env={**os.environ, "PYTHONPATH": str(tree), "LLMGW_PURE": pure},
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.stdout.strip(), done.stderr.strip()


def build(tree, **options):
    return in_tree(tree, "setup.py", "-q", "build_ext", "--inplace", **options)


def what_runs(tree):
    code = "import llmgw.one as one; print(one.__file__.rpartition('.')[2], one.double(21))"
    return in_tree(tree, "-c", code)[0]


@TAKES_C
def test_a_tree_is_compiled_in_place_and_an_edit_counts_at_once(tree):
    _, complaint = build(tree, pure="0")

    assert complaint == ""
    assert what_runs(tree) == "so 42"

    (tree / "llmgw" / "one.py").write_text(ONE.replace("* 2", "* 3"))

    assert what_runs(tree) == "py 63"


@TAKES_C
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param(
            ONE.replace("-> int", "-> str"), "Incompatible return value type", id="a fault"
        ),
        pytest.param(
            "import aiohttp.web\nclass Mine(aiohttp.web.Response):\n    pass\n" + ONE,
            'Class cannot subclass "Response"',
            id="a base of another package",
        ),
    ],
)
def test_a_module_that_cannot_be_compiled_leaves_no_extension(tree, code, reason):
    for left in ("native__mypyc", "one", "gone"):
        (tree / "llmgw" / f"{left}{compiled.SUFFIX}").touch()
    (tree / "llmgw" / "one.py").write_text(code)

    _, complaint = build(tree)

    assert complaint.startswith("llmgw: warning: not compiled, and slower for it: llmgw/one.py:")
    assert reason in complaint
    assert len(complaint.splitlines()) == 1
    assert list(tree.rglob(f"*{compiled.SUFFIX}")) == []
    assert what_runs(tree) == "py 42"
    assert "not compiled: llmgw/one.py:" in build(tree, pure="0")[1]
