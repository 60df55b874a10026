"""The floors of the house: an import points down or stays in its package, never in a circle."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "llmgw"
FLOORS = {
    "core": 0,
    "store": 1,
    "upstream": 1,
    "observe": 1,
    "sim": 1,
    "config_file": 1,
    "about": 1,
    "compiled": 0,
    "runtime": 2,
    "web": 3,
    "daemon": 4,
    "cli": 5,
    "__main__": 6,
}
CORE_MAY_NOT = {"asyncio", "time", "socket", "logging", "aiohttp", "sqlalchemy", "random", "os"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
INSIDE = {
    name: {one for one in imports_of(path) if one in MODULES} for name, path in MODULES.items()
}


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


@pytest.mark.parametrize("module", [name for name in MODULES if package_of(name)])
def test_an_import_points_down_or_stays_in_its_package(module):
    own = package_of(module)
    for other in INSIDE[module]:
        target = package_of(other)
        if target in (None, own):
            continue
        assert FLOORS[target] < FLOORS[own], f"{module} imports {other}"


def test_no_modules_import_each_other_in_a_circle():
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module not in done:
            for other in INSIDE[module] - {module}:
                visit(other, (*trail, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


@pytest.mark.parametrize("module", [name for name in MODULES if package_of(name) == "core"])
def test_core_decides_without_the_outside(module):
    tops = {one.split(".")[0] for one in imports_of(MODULES[module])}

    assert not tops & CORE_MAY_NOT
    assert "async def" not in MODULES[module].read_text()


def test_the_monitor_and_the_discoverer_do_not_know_each_other():
    for one, other in (("monitor", "discoverer"), ("discoverer", "monitor")):
        assert f"llmgw.runtime.{other}" not in INSIDE.get(f"llmgw.runtime.{one}", set())
