"""No test says how fast anything is, and none loses its patience on a busy machine.

What work costs is counted (`tests/counting.py`) or shown by a benchmark; a wait that only keeps a
test from hanging for ever takes `WITHIN` of `tests/fakes/patience.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "tests").rglob("*.py"))
SHORTEST = 5.0  # seconds
CLOCKS = {
    f"{name}{unit}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "time", "times")
    for unit in ("", "_ns")
}
WAITS = {"timeout", "wait_for"}  # of asyncio
BLOCKING = {"communicate", "create_connection", "join", "run", "wait"}  # with a `timeout`


def test_no_example_has_a_time_limit():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_bounds_the_time_that_something_takes(path):
    tree = ast.parse(path.read_text())

    assert list(bounded_times(tree)) == []
    assert list(short_waits(tree)) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param("assert time.monotonic() - began < 1", [1], id="at once"),
        pytest.param("assert 1 >= process_time() - began", [1], id="turned round"),
        pytest.param("took = loop.time() - began\nassert 0.1 < took < 1", [2], id="a name"),
        pytest.param(
            "end = perf_counter_ns()\nassert (end - began) / 2 <= 1", [2], id="two readings"
        ),
        pytest.param(
            "def cost():\n  return time.process_time() - began\n"
            "costs = [min(cost() for _ in range(3))]\nassert costs[0] < 8",
            [4],
            id="a function",
        ),
        pytest.param("assert time.monotonic() - began >= 1", [], id="a lower bound"),
        pytest.param(
            "end = time.monotonic() + 5\nassert time.monotonic() < end", [], id="a guard"
        ),
        pytest.param("assert clock.now - began < 1", [], id="a clock of the test"),
    ],
)
def test_a_bound_is_found(source, lines):
    assert list(bounded_times(ast.parse(source))) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param("async with asyncio.timeout(1), x:\n  pass", [1], id="a block"),
        pytest.param("await asyncio.wait_for(event.wait(), 0.1)", [1], id="a call"),
        pytest.param("await asyncio.wait_for(event.wait(), timeout=2)", [1], id="by name"),
        pytest.param("child.communicate(timeout=3)", [1], id="a process"),
        pytest.param("await asyncio.wait_for(event.wait(), WITHIN)", [], id="patient"),
        pytest.param("async with asyncio.timeout(20):\n  pass", [], id="long"),
        pytest.param("DiscoveryConfig(timeout=1)", [], id="a setting"),
        pytest.param(
            "with pytest.raises(TimeoutError):\n  await asyncio.wait_for(x, 0.1)",
            [],
            id="what never comes",
        ),
        pytest.param(
            "try:\n  async with asyncio.timeout(0.1):\n    await x\nexcept TimeoutError:\n  pass",
            [],
            id="what need not come",
        ),
    ],
)
def test_a_short_wait_is_found(source, lines):
    assert list(short_waits(ast.parse(source))) == lines


# --- times with an upper bound


def bounded_times(tree: ast.Module) -> Iterator[int]:
    """The lines that compare what a clock has gone on by, in whatever names it is kept."""
    readings, spans = _names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for less, operator, more in zip(sides, node.ops, sides[1:], strict=False):
                if isinstance(operator, ast.Gt | ast.GtE):
                    less, more = more, less
                elif not isinstance(operator, ast.Lt | ast.LtE):
                    continue
                if _is_span(less, readings, spans):
                    yield node.lineno


def _names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """What holds the readings of a clock, and what holds or returns differences of them."""
    readings: set[str] = set()
    spans: set[str] = set()
    before = -1
    while before != (before := len(readings) + len(spans)):
        for names, value in _assignments(tree):
            if _is_span(value, readings, spans):
                spans |= names
            elif _has_reading(value, readings):
                readings |= names
    return readings, spans


def _assignments(tree: ast.Module) -> Iterator[tuple[set[str], ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = {one.id for it in targets for one in ast.walk(it) if isinstance(one, ast.Name)}
            yield found, node.value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for one in ast.walk(node):
                if isinstance(one, ast.Return) and one.value is not None:
                    yield {node.name}, one.value


def _is_span(value: ast.expr, readings: set[str], spans: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in spans)
        or (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and _has_reading(node, readings)
        )
        for node in ast.walk(value)
    )


def _has_reading(value: ast.expr, readings: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in readings)
        or (isinstance(node, ast.Call) and not node.args and _name_of(node.func) in CLOCKS)
        for node in ast.walk(value)
    )


# --- waits that end too soon


def short_waits(tree: ast.AST) -> Iterator[int]:
    """The lines of waits that end before a busy machine may have come to it; not those whose end
    is what is expected, or no failure.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and _waits_at_most(node) < SHORTEST:
            yield node.lineno
        if not _expects_its_end(node):
            yield from short_waits(node)


def _waits_at_most(call: ast.Call) -> float:
    name = _name_of(call.func)
    bounds = [one.value for one in call.keywords if one.arg == "timeout"]
    if name in WAITS:
        bounds += call.args[-1:]
    elif name not in BLOCKING:
        return SHORTEST
    values = [one.value for one in bounds if isinstance(one, ast.Constant)]
    return min((one for one in values if isinstance(one, int | float)), default=SHORTEST)


def _expects_its_end(node: ast.AST) -> bool:
    if isinstance(node, ast.Try):
        return any("TimeoutError" in ast.unparse(one.type or node) for one in node.handlers)
    if isinstance(node, ast.With | ast.AsyncWith):
        return any("TimeoutError" in ast.unparse(one.context_expr) for one in node.items)
    return False


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
