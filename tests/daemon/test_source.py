"""Where configurations come from, and what the log is told of one that counts."""

import logging
from pathlib import Path

import pytest

from llmgw.config_file import ConfigError
from llmgw.daemon.source import FileSource, NodesSource, tell_loaded

NODE = '[[nodes]]\nurl = "http://127.0.0.1:9"\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "llmgw.toml"
    path.write_text(NODE)
    return FileSource(path, {}, tmp_path / "state")


def test_a_file_is_read_anew_each_time(file):
    assert file.load().config.cluster.name == "llmgw"

    file.path.write_text(f'[cluster]\nname = "lab"\n{NODE}')

    assert file.load().config.cluster.name == "lab"
    assert str(file) == str(file.path)


def test_the_default_database_lies_in_the_state_folder(file):
    assert file.load().database_url == f"sqlite:///{file.state_dir}/llmgw.db"


def test_the_command_line_is_a_configuration_too():
    source = NodesSource(("http://127.0.0.1:9",), Path("/nowhere"), {"listen": "127.0.0.1:1"})

    loaded = source.load()

    assert loaded.is_open
    assert [one.port for one in loaded.config.gateway.listen] == [1]
    with pytest.raises(ConfigError):
        NodesSource(("nonsense",), Path("/nowhere")).load()


def test_the_log_is_told_once_what_counts_and_all_that_is_odd(file, caplog):
    file.path.write_text(f'[cluster]\nname = "lab"\n{NODE}ring = "r"\n')
    (file.path.parent / "keys.toml").write_text("x = [")
    loaded = file.load()

    with caplog.at_level(logging.INFO, "llmgw"):
        tell_loaded(loaded, file)

    told, *notes = caplog.records
    assert (told.message, told.cluster, told.nodes, told.accounts) == (
        "config loaded",
        "lab",
        1,
        0,
    )
    assert (told.source, told.digest) == (str(file.path), loaded.digest)
    assert {(one.message, one.levelname) for one in notes} == {("config note", "WARNING")}
    assert [one.note.partition(":")[0] for one in notes] == [
        "nodes[0].ring",
        str(file.path.parent / "keys.toml"),
    ]


def test_open_access_is_said_at_every_load(file, caplog):
    tell_loaded(file.load(), file)

    assert any("open access" in one.note for one in caplog.records)
