import json

import pytest

from llmgw.cli import main
from llmgw.config_file import load, render

NODE = '[[nodes]]\nurl = "http://10.0.0.5:8000"\nname = "a"\n'


@pytest.fixture
def write(tmp_path):
    def write(text, name="llmgw.toml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(folder))
    return folder


def test_a_good_file_is_said_to_be_good(write, capsys):
    path = write("[auth]\n" + NODE)

    assert main(["check", "-c", path]) == 0
    assert capsys.readouterr().out == f"{path}: ok, 1 node, 1 pool\n"


def test_warnings_are_told_but_do_not_fail(write, capsys):
    path = write(NODE.replace('8000"', '8000/v1"') + "[provision]\n")

    assert main(["check", "-c", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "warning: provision: is the older gateway's and is ignored"
    assert lines[-1] == f"{path}: ok, 1 node, 1 pool; 3 warnings"


def test_all_faults_are_told_with_their_places(write, capsys):
    path = write('[gateway]\nlistn = ":1"\nhealth_interval = 3\n[provision]\n' + NODE)

    assert main(["check", "-c", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert 'error: gateway.listn: unknown key (did you mean "listen"?)' in lines
    assert lines[-1] == f"{path}: 2 errors, 1 warning"


def test_a_missing_file_is_one_clear_line(tmp_path, capsys):
    path = tmp_path / "no.toml"

    assert main(["check", "-c", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"error: {path}: there is no such file",
        f"{path}: 1 error",
    ]


def test_a_faulty_keys_file_fails(write, capsys):
    path = write(NODE)
    write('[[auth.keys]]\nname = "k"\ndigest = "CANARY"', "keys.toml")

    assert main(["check", "-c", path]) == 1
    out = capsys.readouterr().out
    assert "error: keys.toml: auth.keys[0].digest: must be" in out
    assert "CANARY" not in out


def test_the_findings_as_json(write, capsys):
    path = write(NODE + 'ulr = "x"')

    assert main(["check", "-c", path, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "file": path,
        "ok": False,
        "digest": None,
        "errors": [
            {"place": "nodes[0].ulr", "message": "unknown key", "hint": 'did you mean "url"?'}
        ],
        "warnings": [],
    }


def test_what_differs_from_another_file(write, capsys):
    old = write("[auth]\n" + NODE, "old.toml")
    new = write("[auth]\n" + NODE + "drain = true", "new.toml")

    assert main(["check", "-c", new, "--diff", old]) == 0
    assert 'node "a" (http://10.0.0.5:8000): drain false -> true' in capsys.readouterr().out

    assert main(["check", "-c", new, "--diff", new]) == 0
    assert "loading it changes nothing\n" in capsys.readouterr().out


def test_what_a_reload_would_change_in_the_running_gateway(write, runtime, capsys):
    path = write("[auth]\n" + NODE)
    shown = render(load(runtime.parent / "llmgw.toml", environ={}).config)
    (runtime / "loaded.json").write_text(json.dumps(shown))
    write('[auth]\n[gateway]\nhealth_interval = "9s"\n' + NODE)

    assert main(["check", "-c", path, "--diff", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changes"] == ['gateway.health_interval: "3s" -> "9s"']


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no gateway runs to compare with"), ("{", "can't be read")],
)
def test_a_gateway_that_can_not_be_compared_with(write, runtime, capsys, content, message):
    if content is not None:
        (runtime / "loaded.json").write_text(content)

    assert main(["check", "-c", write(NODE), "--diff"]) == 1
    assert message in capsys.readouterr().out


def test_another_file_that_can_not_be_loaded_fails(write, capsys):
    new, old = write(NODE, "new.toml"), write("[gatway]", "old.toml")

    assert main(["check", "-c", new, "--diff", old]) == 1
    assert "gatway: unknown section" in capsys.readouterr().out
