"""Every message that the code logs stands in the runbook, and the runbook speaks of no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def messages_of(tree: ast.Module) -> Iterator[str]:
    """Of log calls, `Notice` values, and functions named `..._text` whose answer is logged."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr=level),
                args=[ast.Constant(value=str(text)), *_],
            ) if level in LEVELS:
                yield text
            case ast.Call(func=ast.Name(id="Notice"), args=[ast.Constant(value=str(text)), *_]):
                yield text
            case ast.FunctionDef(name=name, returns=ast.Name(id="str")) if name.endswith("_text"):
                yield from (one.value for one in ast.walk(node) if is_text(one))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def logged_otherwise(tree: ast.Module) -> Iterator[int]:
    """Lines that log what this test can't read."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[first, *more]
            ) if level in LEVELS:
                message = more[0] if level == "log" else first
                known = ast.unparse(message)
                if not isinstance(message, ast.Constant) and not (
                    known == "notice.message" or known.startswith("_handoff_text(")
                ):
                    yield node.lineno


def trees() -> Iterator[ast.Module]:
    for path in sorted((ROOT / "llmgw").rglob("*.py")):
        text = path.read_text()
        if "getLogger(" in text or "Notice(" in text:
            yield ast.parse(text)


LOGGED = {text for tree in trees() for text in messages_of(tree)} | {"request"}
WRITTEN = {
    text
    for row in re.findall(r"^\| (`[^|]*) \|", RUNBOOK, re.MULTILINE)
    for text in re.findall("`([^`]*)`", row)
}


def test_every_logged_message_is_in_the_runbook():
    assert not LOGGED - WRITTEN


def test_the_runbook_speaks_of_no_message_that_is_not_logged():
    assert not WRITTEN - LOGGED


def test_every_message_is_a_constant():
    assert [line for tree in trees() for line in logged_otherwise(tree)] == []
