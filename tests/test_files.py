"""The house rules that a machine can hold: module sizes, who starts tasks, no escapes in core, and
nothing in a compiled module that the compiler takes for something else."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "llmgw").rglob("*.py"))
COMPILED = [
    ROOT / line
    for line in (ROOT / "packaging" / "compiled.txt").read_text().splitlines()
    if line.endswith(".py")
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_one_idea_in_at_most_300_lines_and_says_which(path):
    text = path.read_text()

    assert len(text.splitlines()) <= 300
    assert text.startswith('"""')


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_supervisor_starts_tasks(path):
    starts = re.search(r"\b(create_task|ensure_future)\(", path.read_text())

    assert path.name == "tasks.py" or not starts


@pytest.mark.parametrize(
    "path", [one for one in MODULES if "core" in one.parts], ids=lambda path: path.name
)
def test_core_has_no_escape_hatches(path):
    assert not re.search(r"# noqa|type: ignore|pragma: no cover", path.read_text())


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_compiled_module_says_nothing_that_mypyc_leaves_out(path):
    for node in ast.walk(ast.parse(path.read_text())):
        # `from` is ignored: what was caught stays the context, and may be shown in a traceback
        assert not (isinstance(node, ast.Raise) and node.cause), f"line {node.lineno}"
        # becomes a property that caches nothing
        assert not (isinstance(node, ast.Name) and node.id == "cached_property"), node.lineno
        # names a folder that is not there
        assert not (isinstance(node, ast.Name) and node.id == "__file__"), node.lineno
        # the slot is not made, and a weak reference is refused
        assert not (isinstance(node, ast.keyword) and node.arg == "weakref_slot"), node.lineno
