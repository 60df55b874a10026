"""The one-file program: the archive is the same each time, and it becomes what it holds."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_builder():
    spec = importlib.util.spec_from_file_location("onefile", ROOT / "packaging" / "onefile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


onefile = load_builder()

PROGRAM = """
import os, sys
print(os.getpid(), os.environ["LLMGW_ARCHIVE"], *sys.argv[1:])
"""


@pytest.fixture
def site(tmp_path):
    """A program that says who it is, where the real one would be."""
    package = tmp_path / "site" / "llmgw"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(PROGRAM)
    return tmp_path / "site"


@pytest.fixture
def program(site, tmp_path):
    path = tmp_path / "llmgw"
    onefile.write(path, onefile.pack(site))
    return path


def start(program, cache, *words):
    environment = {"PATH": os.environ["PATH"], "CACHE_DIRECTORY": str(cache)}
    command = [sys.executable, str(program), *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_builds_are_the_same_to_the_byte(site, program, tmp_path):
    again = tmp_path / "again"
    for path in site.rglob("*"):
        os.utime(path, (1, 1))

    onefile.write(again, onefile.pack(site))

    assert again.read_bytes() == program.read_bytes()
    assert os.access(program, os.X_OK)


def test_it_becomes_the_program_in_the_same_process(program, tmp_path):
    child = start(program, tmp_path / "cache", "serve", "-c", "file")
    said, _ = child.communicate(timeout=30)

    assert said.split() == [str(child.pid), str(program), "serve", "-c", "file"]


def test_it_unpacks_once_also_when_two_start_at_a_time(program, tmp_path):
    cache = tmp_path / "cache"

    children = [start(program, cache) for _ in range(3)]
    ends = [(child.communicate(timeout=30), child.returncode) for child in children]

    assert [code for _, code in ends] == [0, 0, 0], ends
    (unpacked,) = cache.iterdir()
    assert list(unpacked.glob("llmgw/__pycache__/*.pyc")), "later starts find it compiled"


def test_a_folder_that_cannot_be_written_is_one_clear_line(program, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")

    child = start(program, taken / "cache")
    _, complaint = child.communicate(timeout=30)

    assert child.returncode == 1
    assert complaint.startswith("llmgw: can't unpack: ")
    assert len(complaint.splitlines()) == 1


def test_a_damaged_payload_is_one_clear_line(site, tmp_path):
    path = tmp_path / "llmgw"
    onefile.write(path, onefile.pack(site)[:-40])

    child = start(path, tmp_path / "cache")
    _, complaint = child.communicate(timeout=30)

    assert child.returncode == 1
    assert complaint.endswith("is damaged\n")
    assert list((tmp_path / "cache").iterdir()) == []
