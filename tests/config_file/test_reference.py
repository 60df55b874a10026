import re
import tomllib
from pathlib import Path

import pytest

from llmgw.config_file.assembly import PLAIN, SECTIONS
from llmgw.config_file.examples import TABLES
from llmgw.config_file.reference import PAGE, SAMPLE, page, sample, written_default
from llmgw.core.config import Config, Pool
from tests.config_file.texts import config_of

ROOT = Path(__file__).resolve().parents[2]
KEYS = [(section, one) for section in SECTIONS for one in section.fields]
FILES = {"/etc/llmgw/gpu-1.key": b"x", "/etc/llmgw/openai.key": b"x"}
ENVIRON = {"OLLAMA_KEY": "x", "ANTHROPIC_API_KEY": "x"}
SETTABLE = re.compile(r"^#(?=[\[a-z])", re.MULTILINE)


def identity(value):
    return getattr(value, "path", None) or getattr(value, "key", None)


@pytest.mark.parametrize(("path", "text"), [(SAMPLE, sample()), (PAGE, page())], ids=str)
def test_the_file_is_in_step_with_the_tables(path, text):
    assert (ROOT / path).read_text() == text, "python -m llmgw.config_file.reference writes it"


def test_the_sample_as_it_is_changes_nothing():
    assert config_of(sample()) == Config(pools=(Pool("cluster", ()),))


def test_the_sample_with_every_key_taken_loads():
    config = config_of(SETTABLE.sub("", sample()), environ=ENVIRON, files=FILES)

    assert len(config.nodes) == 3
    assert len(config.accounts) == 2
    assert len(config.pools) == 2
    assert config.gateway == Config().gateway
    assert config.streams == Config().streams
    assert config.limits == Config().limits


@pytest.mark.parametrize(("section", "one"), KEYS, ids=identity)
def test_every_key_is_in_the_sample(section, one):
    raw = tomllib.loads(SETTABLE.sub("", sample()))
    parts = section.path.split(".")
    tables = [raw]
    for part in parts:
        found = [table[part] for table in tables if part in table]
        tables = [
            one for entry in found for one in (entry if isinstance(entry, list) else [entry])
        ]

    assert any(one.key in table for table in tables)


@pytest.mark.parametrize(("section", "one"), KEYS, ids=identity)
def test_every_key_is_on_the_page_and_says_something(section, one):
    head = f"[[{section.path}]]" if section.many else f"[{section.path}]"
    part = page().partition(f"## `{head}`\n")[2].partition("\n## ")[0]

    assert f"| `{one.key}` |" in part
    assert one.doc.endswith((".", ")"))


@pytest.mark.parametrize(
    ("section", "one"),
    [(section, one) for section in PLAIN for one in section.fields],
    ids=identity,
)
def test_a_default_that_is_written_down_is_the_default(section, one):
    default = written_default(section, one)

    if default is None:
        assert one.default
    else:
        assert one.kind.parse(default) == section.default_of(one)


def test_examples_know_their_sections():
    assert {path for path, _ in TABLES} <= {section.path for section in SECTIONS}
