"""Put each known mistake into a copy of the tree: the tests that hold its place must fail there.

A mistake is a `*.patch` beside this file. Its first lines say what it is and who must notice:

    # One empty list is believed.
    # caught by: tests/core/test_discovery.py

The exit status is 1 if a mistake passes unnoticed, if a patch no longer applies, if the tests fail
without any, or if they fail for another reason than a test that says so (an import, a name).
Run as a script, with parts of patch names to take only some.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPIED = ("llmgw", "tests", "etc", "pyproject.toml")
WORKERS = 2
WITHIN = 300.0  # seconds for one mistake; a test that hangs has noticed nothing
CAUGHT_BY = "# caught by:"
PLUGINS = (
    *("-p", "pytest_asyncio.plugin", "-p", "pytest_aiohttp.plugin"),
    *("-p", "pytest_timeout", "-p", "no:cacheprovider"),
)

_FAILED = re.compile(r"^FAILED (.+?)(?: - (.*))?$", re.MULTILINE)
_BROKEN = re.compile(r"(?:NameError|ImportError|ModuleNotFoundError|SyntaxError|IndentationError)")


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it is, and the test files that must notice it."""

    path: Path
    mistake: str
    caught_by: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Verdict:
    """Whether a run went as it should, and the test that failed or what went wrong."""

    name: str
    is_good: bool
    said: str
    seconds: float = 0.0

    def __str__(self) -> str:
        mark = "caught" if self.is_good else "WRONG "
        return f"{mark} {self.seconds:5.1f} s  {self.name:<36} {self.said}"


def main(wanted: Sequence[str]) -> int:
    began = time.monotonic()
    mutants = [one for one in read_mutants(HERE) if not wanted or _is_wanted(one, wanted)]
    files = sorted({file for one in mutants for file in one.caught_by})
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="llmgw-mutants-") as folder:
        trees = [copy_tree(ROOT, Path(folder) / str(number)) for number in range(WORKERS)]
        whole = judge_whole(*run_tests(trees[0], files))
        print(whole, flush=True)
        if not whole.is_good:
            return 1
        for count, verdict in enumerate(verdicts_of(mutants, trees), start=1):
            wrong += not verdict.is_good
            print(f"{count:3}/{len(mutants)} {verdict}", flush=True)
    print(f"{len(mutants) - wrong} caught, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong or not mutants else 0


def read_mutants(folder: Path) -> list[Mutant]:
    return [read_mutant(path) for path in sorted(folder.glob("*.patch"))]


def read_mutant(path: Path) -> Mutant:
    """Raises `ValueError` where the header does not say what it must."""
    head = [line for line in path.read_text().splitlines() if line.startswith("# ")]
    files = [line for line in head if line.startswith(CAUGHT_BY)]
    mistakes = [line.removeprefix("# ") for line in head if line not in files]
    caught_by = tuple(" ".join(line.removeprefix(CAUGHT_BY) for line in files).split())
    if not mistakes or not caught_by:
        raise ValueError(f"{path.name}: the header names no mistake, or nobody who catches it")
    return Mutant(path, " ".join(mistakes), caught_by)


def copy_tree(root: Path, target: Path) -> Path:
    """Without what was compiled: a mistake is put into sources, and these must be what runs."""
    target.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", "compiled.sums")
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignored)
        elif source.exists():
            shutil.copy2(source, target / name)
    return target


def verdicts_of(mutants: Sequence[Mutant], trees: Sequence[Path]) -> Iterator[Verdict]:
    """As they come; each tree holds one mistake at a time."""
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def in_a_free_tree(mutant: Mutant) -> Verdict:
        tree = free.get()
        try:
            return verdict_of(mutant, tree)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        for done in as_completed([pool.submit(in_a_free_tree, one) for one in mutants]):
            yield done.result()


def verdict_of(mutant: Mutant, tree: Path) -> Verdict:
    began = time.monotonic()
    if not apply(mutant, tree):
        return Verdict(mutant.name, False, "the patch no longer applies")
    try:
        status, output = run_tests(tree, mutant.caught_by)
    finally:
        apply(mutant, tree, "--reverse")
    is_good, said = judge(status, output)
    return Verdict(mutant.name, is_good, said, time.monotonic() - began)


def apply(mutant: Mutant, tree: Path, *options: str) -> bool:
    """Lines may have moved: git finds a hunk by its context and not by its number."""
    command = ["git", "apply", "--recount", *options, str(mutant.path)]
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(command, cwd=tree, env=alone, capture_output=True).returncode == 0


def run_tests(tree: Path, files: Sequence[str]) -> tuple[int | None, str]:
    """The exit status, None if they did not end; and what was said."""
    command = [sys.executable, "-m", "pytest", "--exitfirst", "--tb=no", "-rfE"]
    command += [*PLUGINS, *files]
    env = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "LLMGW_PURE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the other plugins take longer than the tests
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    try:
        done = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, timeout=WITHIN
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def judge(status: int | None, output: str) -> tuple[bool, str]:
    """A mistake counts as caught where a test failed, and nothing else did."""
    failed = _FAILED.search(output)
    match status:
        case None:
            return False, f"the tests did not end within {WITHIN:.0f} s"
        case 0:
            return False, "no test noticed"
        case 1 if failed and _BROKEN.match(failed[2] or ""):
            return False, f"the patch breaks the code: {failed[2]}"
        case 1 if failed:
            return True, failed[1]
        case _:
            return False, f"pytest did not get to a failing test (status {status})"


def judge_whole(status: int | None, output: str) -> Verdict:
    """Where tests fail without a mistake, their failing with one says nothing."""
    failed = _FAILED.search(output)
    said = "tests pass" if status == 0 else f"tests fail: {failed[1] if failed else status}"
    return Verdict("(no mistake)", status == 0, said)


def _is_wanted(mutant: Mutant, wanted: Sequence[str]) -> bool:
    return any(part in mutant.name for part in wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
