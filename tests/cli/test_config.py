import json
import tomllib

import pytest

from llmgw.cli import main
from tests.config_file.test_assembly import OLDER


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "gateway.toml"
    path.write_text(OLDER)
    return str(path)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("NODE_KEY", "CANARY")
    path = tmp_path / "llmgw.toml"
    path.write_text('[[nodes]]\nurl = "http://h"\nname = "a"\napi_key_env = "NODE_KEY"\n')
    return str(path)


def test_show_prints_every_key_with_its_effective_value(path, capsys):
    assert main(["config", "show", "-c", path]) == 0

    out = capsys.readouterr().out
    shown = tomllib.loads(out)
    assert shown["gateway"]["listen"] == ":8000"
    assert shown["nodes"][0]["api_key_env"] == "NODE_KEY"
    assert "CANARY" not in out


def test_show_as_json(path, capsys):
    assert main(["config", "show", "-c", path, "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["streams"]["keepalive"] == "10s"


def test_show_of_a_faulty_file_fails_with_its_faults(tmp_path, capsys):
    path = tmp_path / "llmgw.toml"
    path.write_text("[gatway]\n[loging]")

    assert main(["config", "show", "-c", str(path)]) == 1
    assert capsys.readouterr().err.count("unknown section") == 2


def test_migrate_prints_todays_form(old, capsys):
    assert main(["config", "migrate", old]) == 0

    fresh = tomllib.loads(capsys.readouterr().out)
    assert fresh["nodes"][0]["url"] == "http://10.0.0.5:8000"
    assert "provision" not in fresh


def test_migrate_writes_a_new_file_and_keeps_an_existing_one(old, tmp_path, capsys):
    new = tmp_path / "llmgw.toml"

    assert main(["config", "migrate", old, "-o", str(new)]) == 0
    assert main(["check", "-c", str(new)]) == 0
    assert main(["config", "migrate", old, "-o", str(new)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["config", "migrate", old, "-o", str(new), "--force"]) == 0


def test_an_action_is_needed(capsys):
    with pytest.raises(SystemExit) as left:
        main(["config"])

    assert left.value.code == 2
    assert "ACTION" in capsys.readouterr().err
