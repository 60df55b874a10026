"""`llmgw admin`: what it prints fits the configuration, and the secret itself stays out of it."""

import io
import json
import tomllib
from hashlib import sha256

import pytest

from llmgw.cli import admin, main
from llmgw.config_file.kinds import parse_digest
from llmgw.core.admin_password import parse_hash

PASSWORD = "correct horse battery"


class Typed(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def piped(monkeypatch):
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


@pytest.fixture
def typed(monkeypatch):
    def answers(*words):
        left = iter(words)
        monkeypatch.setattr("sys.stdin", Typed())
        monkeypatch.setattr(admin.getpass, "getpass", lambda prompt: next(left))

    return answers


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_a_password_from_a_pipe(piped, capsys, ending):
    piped(PASSWORD + ending)

    assert main(["admin", "password"]) == 0

    out = capsys.readouterr().out
    assert PASSWORD not in out
    assert parse_hash(tomllib.loads(out)["password"]).matches(PASSWORD)


def test_a_password_is_asked_for_twice(typed, capsys):
    typed(PASSWORD, PASSWORD)

    assert main(["admin", "password", "--json"]) == 0

    assert parse_hash(json.loads(capsys.readouterr().out)["password"]).matches(PASSWORD)


def test_two_different_ones_are_refused(typed, capsys):
    typed(PASSWORD, PASSWORD + "x")

    assert main(["admin", "password"]) == 1

    assert capsys.readouterr().err == "llmgw admin: these were two different passwords\n"


@pytest.mark.parametrize("text", ["", "short\n"])
def test_a_short_password_is_refused(piped, capsys, text):
    piped(text)

    assert main(["admin", "password"]) == 1

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "at least 10 characters" in captured.err


def test_a_token_is_shown_once_and_apart_from_its_digest(capsys):
    assert main(["admin", "token"]) == 0

    out, err = capsys.readouterr()
    token = err.splitlines()[0]
    assert token.startswith("llmgw-admin-")
    assert token not in out
    digest = parse_digest(tomllib.loads(out)["token_digest"])
    assert digest == sha256(token.encode()).hexdigest()


def test_two_tokens_differ(capsys):
    for _ in range(2):
        main(["admin", "token", "--json"])

    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["token"] != second["token"]
