"""`llmgw key`: a key is shown once, and only its digest stays."""

import io
import json
import tomllib
from hashlib import sha256

import pytest

from llmgw.cli import main
from llmgw.config_file import load_keys

TOKEN = "sk-of-an-older-gateway"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "llmgw.toml"
    path.write_text('[[nodes]]\nurl = "http://127.0.0.1:8000"\n')
    return path


@pytest.fixture
def key(config, capsys):
    """Run `llmgw key ACTION ...`: exit status, output, and what was said aside."""

    def run(action: str, *words: str) -> tuple[int, str, str]:
        status = main(["key", action, "-c", str(config), *words])
        shown = capsys.readouterr()
        return status, shown.out.strip(), shown.err

    return run


def read(config):
    return load_keys(config.with_name("keys.toml"), pools={"cluster"})


def test_a_new_key_works_and_is_kept_as_a_digest_only(key, config):
    status, token, aside = key("new", "--models", "gpt-*, llama", "--name", "ci")

    (found,) = read(config)
    assert status == 0
    assert token.startswith("sk-llmgw-")
    assert "only time" in aside
    assert found.digest == sha256(token.encode()).hexdigest()
    assert (found.name, found.models) == ("ci", ("gpt-*", "llama"))
    assert token not in config.with_name("keys.toml").read_text()


def test_a_key_may_expire_and_carry_labels_and_a_limit(key, config):
    key("new", "--expires", "90d", "--label", "team=search", "--max-in-flight", "4")

    (found,) = read(config)
    written = tomllib.loads(config.with_name("keys.toml").read_text())["auth"]["keys"][0]
    assert found.labels == (("team", "search"),)
    assert found.max_in_flight == 4
    assert written["expires_at"].timestamp() == found.expires_at


def test_for_scripts_a_new_key_is_an_object(key):
    _, out, _ = key("new", "--json")

    made = json.loads(out)
    assert made["key"].startswith("sk-llmgw-")
    assert made["id"] == sha256(made["key"].encode()).hexdigest()[:16]


def test_the_list_shows_no_secret(key):
    _, token, _ = key("new", "--name", "ci", "--label", "env=prod")

    _, out, _ = key("list")
    head, line = out.splitlines()

    assert head.split() == ["id", "name", "pool", "models", "expires", "labels"]
    assert line.split() == [sha256(token.encode()).hexdigest()[:16], "ci", "cluster", "*", "never",
                            "env=prod"]  # fmt: skip
    assert token not in out


def test_the_list_for_scripts(key):
    key("new", "--name", "ci", "--expires", "1h")

    _, out, _ = key("list", "--json")

    (one,) = json.loads(out)["keys"]
    assert one["name"] == "ci"
    assert one["expires"].endswith("+00:00")


def test_an_empty_list_is_said(key):
    assert key("list")[:2] == (0, "no keys")


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_revoked_key_is_gone(key, config, by):
    _, token, _ = key("new", "--name", "ci")
    key("new", "--name", "stays")
    name = "ci" if by == "name" else sha256(token.encode()).hexdigest()[:16]

    assert key("revoke", name)[:2] == (0, "revoked ci")

    assert [one.name for one in read(config)] == ["stays"]
    status, _, aside = key("revoke", name)
    assert status == 1
    assert "no such key" in aside


def test_the_last_key_that_is_revoked_leaves_the_gateway_closed(key, config):
    key("new", "--name", "ci")

    _, out, _ = key("revoke", "ci", "--json")

    assert json.loads(out)["revoked"]["name"] == "ci"
    assert read(config) == ()


def test_a_key_that_clients_have_already_is_imported_from_standard_input(key, config, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))

    status, out, _ = key("import", "--name", "old")

    (found,) = read(config)
    assert (status, found.digest) == (0, sha256(TOKEN.encode()).hexdigest())
    assert TOKEN not in out


def test_or_by_its_digest(key, config):
    digest = sha256(TOKEN.encode()).hexdigest()

    assert key("import", "--digest", f"sha256:{digest}", "--json")[0] == 0

    assert read(config)[0].digest == digest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("new", "--pool", "none"), 'no pool "none"', id="a pool there is not"),
        pytest.param(("new", "--expires", "soon"), "--expires", id="no duration"),
        pytest.param(("new", "--label", "team"), "--label", id="no label"),
        pytest.param(("new", "--models", ","), "models", id="no models"),
        pytest.param(("import", "--digest", "abc"), "--digest", id="no digest"),
        pytest.param(("import",), "no key on standard input", id="nothing to import"),
    ],
)
def test_what_cant_be_done_is_said_in_a_line(key, config, monkeypatch, words, said):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    status, _, aside = key(*words)

    assert status == 1
    assert said in aside
    assert not config.with_name("keys.toml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--name", "ci"), "--name: is that of auth.keys[0] too", id="its name"),
        pytest.param(("--name", "x", "--pool", "blue"), "--pool: there is no pool", id="its pool"),
        pytest.param(("--max-in-flight", "0"), "--max-in-flight: must be", id="its limit"),
    ],
)
def test_what_is_wrong_with_a_new_key_is_told_of_the_option(key, words, said):
    key("new", "--name", "ci")

    status, _, aside = key("new", *words)

    assert status == 1
    assert aside.startswith(f"llmgw key: {said}")


def test_a_fault_that_the_keys_file_had_already_keeps_its_place(key, config):
    config.with_name("keys.toml").write_text("[[auth.keys]]\nname = 1\n")

    _, _, aside = key("new")

    assert "keys.toml: auth.keys[0].name" in aside


def test_without_a_configuration_there_are_no_keys(tmp_path, capsys):
    assert main(["key", "list", "-c", str(tmp_path / "none.toml")]) == 1
    assert "no such file" in capsys.readouterr().err
