import hashlib
from pathlib import Path

import pytest

from llmgw.config_file import ConfigError, config_for_nodes, load, state_folder
from llmgw.core.types import CLUSTER
from tests.config_file.texts import DIGEST, NODE

KEY = f'[[auth.keys]]\nname = "k"\ndigest = "{DIGEST}"\n'
OTHER = f'[[auth.keys]]\nname = "o"\ndigest = "sha256:{"b" * 64}"\n'


@pytest.fixture
def write(tmp_path):
    def write(text, keys=None, keys_name="keys.toml"):
        path = tmp_path / "llmgw.toml"
        path.write_text(text)
        if keys is not None:
            (tmp_path / keys_name).write_text(keys)
        return path

    return write


def places(notes):
    return [note.place for note in notes]


def test_a_file_is_loaded_with_its_digest(write):
    loaded = load(write(NODE), environ={}, state_dir=Path("/var/lib/llmgw"))

    assert [node.name for node in loaded.config.nodes] == ["a"]
    assert loaded.digest == hashlib.sha256(NODE.encode()).hexdigest()[:12]
    assert loaded.database_url == "sqlite:////var/lib/llmgw/llmgw.db"


def test_the_database_of_the_file_goes_before_the_default(write):
    loaded = load(write('[database]\nurl = "sqlite://"'), environ={}, state_dir=Path("/x"))

    assert loaded.database_url == "sqlite://"


def test_a_relative_key_file_lies_beside_the_configuration(write, tmp_path):
    (tmp_path / "key").write_text("s3cret")

    loaded = load(write(NODE + 'api_key_file = "key"'), environ={})

    assert loaded.config.nodes[0].credential == (("authorization", "Bearer s3cret"),)


def test_environment_variables_are_those_handed_in(write):
    loaded = load(write(NODE + 'api_key_env = "KEY"'), environ={"KEY": "s3cret"})

    assert loaded.config.nodes[0].credential == (("authorization", "Bearer s3cret"),)


def test_a_faulty_file_is_not_loaded(write):
    with pytest.raises(ConfigError, match="unknown section"):
        load(write("[gatway]"), environ={})


def test_without_auth_and_keys_file_the_gateway_is_open_and_says_so(write, tmp_path):
    loaded = load(write(NODE), environ={})

    assert loaded.is_open
    assert loaded.keys_file == tmp_path / "keys.toml"
    assert "auth" in places(loaded.notes)


@pytest.mark.parametrize(
    ("text", "keys", "names"),
    [
        pytest.param("[auth]", None, [], id="an empty section"),
        pytest.param(KEY, None, ["k"], id="a key in the configuration"),
        pytest.param("", "", [], id="an empty keys file"),
        pytest.param("", KEY, ["k"], id="a key in the keys file"),
        pytest.param(KEY, OTHER, ["k", "o"], id="keys in both"),
    ],
)
def test_auth_or_a_keys_file_closes_the_gateway(write, text, keys, names):
    loaded = load(write(NODE + text, keys), environ={})

    assert not loaded.is_open
    assert [key.name for key in loaded.keys] == names
    assert loaded.notes == ()


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        pytest.param("= broken", "", id="no TOML"),
        pytest.param(KEY + 'pool = "nope"', "keys.toml: auth.keys[0].pool", id="unknown pool"),
        pytest.param(KEY, "keys.toml: auth.keys[0].name", id="a key that is there already"),
    ],
)
def test_a_faulty_keys_file_closes_too_and_brings_no_key(write, keys, place):
    text = NODE + (KEY if place.endswith("name") else "")

    loaded = load(write(text, keys), environ={})

    assert not loaded.is_open
    assert loaded.keys_faults[0].place == place
    assert loaded.keys == (loaded.config.auth.keys if loaded.config.auth else ())


def test_the_keys_file_may_lie_elsewhere(write):
    path = write(NODE + '[auth]\nkeys_file = "team.toml"', KEY, "team.toml")

    assert [key.name for key in load(path, environ={}).keys] == ["k"]


def test_nodes_of_a_command_line_need_no_file():
    loaded = config_for_nodes(["http://h:1/v1", "http://h:2"], listen="127.0.0.1:0")

    assert [str(node.url) for node in loaded.config.nodes] == ["http://h:1", "http://h:2"]
    assert loaded.config.gateway.listen[0].host == "127.0.0.1"
    assert loaded.config.pools[0].name == CLUSTER
    assert loaded.is_open
    assert loaded.keys_file is None
    assert places(loaded.notes) == ["nodes[0].url", "auth"]


@pytest.mark.parametrize(
    ("urls", "options", "place"),
    [
        (["htp://h"], {}, "nodes[0].url"),
        (["http://h", "http://h"], {}, "nodes[1].url"),
        (["http://h"], {"listen": "8000"}, "gateway.listen"),
        (["http://127.0.0.1:8000"], {}, "nodes[0].url"),
    ],
)
def test_nodes_of_a_command_line_are_checked_like_those_of_a_file(urls, options, place):
    with pytest.raises(ConfigError) as error:
        config_for_nodes(urls, **options)

    assert [fault.place for fault in error.value.faults] == [place]


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"STATE_DIRECTORY": "/var/lib/llmgw"}, "/var/lib/llmgw"),
        ({"STATE_DIRECTORY": "/var/lib/llmgw:/var/lib/other"}, "/var/lib/llmgw"),
        ({"HOME": "/home/me"}, "/home/me/.local/state/llmgw"),
        ({}, str(Path.home() / ".local/state/llmgw")),
    ],
)
def test_where_state_lies(environ, folder):
    assert str(state_folder(environ)) == folder
