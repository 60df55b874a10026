"""Whatever README and docs tell people to type, look at or configure exists."""

import argparse
import re
import shlex
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

from llmgw.cli import COMMANDS, _load
from llmgw.core.config import Config
from tests.test_contract import CONSTANTS, defined

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
OPERATED = sorted(
    path for path in (ROOT / "etc").rglob("*") if path.suffix in (".json", ".yml", ".yaml")
)
MAKEFILES = [ROOT / "Makefile", *(ROOT / "mk").glob("*.mk")]
UNITS = {".service", ".socket", ".toml", ".db", ".sysusers", ".conf"}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")

_CODE = re.compile(r"`([^`\n]+)`|^ {4}(\S.*)$|^((?:sudo |\.venv/bin/)?llmgw .*)$", re.MULTILINE)
_METRIC = re.compile(r"\b(?:gateway|cluster_nodes|health_check)_[a-z_]+[a-z]\b(?!\.|\()")
_KEY = re.compile(r"^([a-z]+)\.([a-z_]+)$")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


def code_of(path: Path) -> list[str]:
    """What stands between backticks or in an indented or fenced block."""
    return ["".join(found).strip() for found in _CODE.findall(path.read_text())]


def names(path: Path) -> str:
    return str(path.relative_to(ROOT))


def said(pattern: str) -> list[object]:
    """Every match in any code of any page, as a test's parameter."""
    found = {
        (names(page), match)
        for page in PAGES
        for code in code_of(page)
        for match in re.findall(pattern, code)
    }
    return [pytest.param(match, id=f"{page}: {match}"[:80]) for page, match in sorted(found)]


@cache
def options_of(command: str) -> tuple[set[str], set[str]]:
    """A command's options and, where it has them, its subcommands' names."""
    parser = argparse.ArgumentParser()
    _load(command).configure(parser)
    options, below = set(parser._option_string_actions), set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below |= set(action.choices)
            for one in action.choices.values():
                options |= set(one._option_string_actions)
    return options, below


@pytest.mark.parametrize("line", said(r"(?:^|\s|/)llmgw ([a-z][^|#>]*)"))
def test_a_command_line_would_be_understood(line):
    command, *words = shlex.split(line.replace("'", "").replace('"', ""))
    assert command in COMMANDS
    options, below = options_of(command)
    assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= options
    if below and words and re.fullmatch(r"[a-z]+", words[0]):
        assert words[0] in below


@pytest.mark.parametrize("target", said(r"(?:^|\s)make ([a-z]+)(?:\s|$)"))
def test_a_make_target_is_there(target):
    rules = "\n".join(path.read_text() for path in MAKEFILES)

    assert re.search(rf"^{target}:", rules, re.MULTILINE)


def test_make_help_tells_of_every_target_that_the_pages_name():
    told = set(re.findall(r"^([a-z-]+):.*## ", "\n".join(p.read_text() for p in MAKEFILES), re.M))

    assert {"demo", "test", "check", "mutants", "stress", "smoke", "precommit"} <= told


@pytest.mark.parametrize("path", [*PAGES, *OPERATED], ids=names)
def test_every_metric_that_is_named_is_exposed(path):
    known = set(defined())

    for name in set(_METRIC.findall(path.read_text())):
        bare = name
        for suffix in HISTOGRAM_SUFFIXES:
            bare = bare.removesuffix(suffix)
        is_prefix = any(one.startswith(f"{name}_") for one in known)
        assert {name, bare} & known or is_prefix, f"{name} is not a metric"


@pytest.mark.parametrize("key", said(r"^[a-z]+\.[a-z_]+$"))
def test_a_configuration_key_is_one(key):
    section, name = _KEY.fullmatch(key).groups()
    if Path(key).suffix in UNITS or not hasattr(Config(), section):
        return
    found = getattr(Config(), section)
    if is_dataclass(found):
        assert name in {field.name for field in fields(found)}


@pytest.mark.parametrize("path", PAGES, ids=names)
def test_links_lead_to_files(path):
    for target in _LINK.findall(path.read_text()):
        assert (path.parent / target).exists(), target


def test_the_codes_of_the_readme_are_given():
    table = re.findall(r"^\| [\d, ]+ \| ([^|]+) \|", (ROOT / "README.md").read_text(), re.M)
    codes = [code for cell in table for code in re.findall(r"`([a-z_]+)`", cell)]

    assert len(codes) > 8
    assert [code for code in codes if not CONSTANTS[code]] == []
