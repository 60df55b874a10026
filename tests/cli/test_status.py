"""`llmgw status` against a control socket; against a gateway: `test_serve.py`."""

import json

import pytest

from llmgw.cli import main, status

HEALTHY = {
    "status": "ok",
    "nodes": 2,
    "healthy": 2,
    "version": "1.0",
    "pid": 7,
    "state": "ready",
    "config": {"last_error": ""},
    "details": [
        {"name": "a", "url": "http://a:1", "status": "healthy", "models": {"state": "untried"}},
        {
            "name": "long-name",
            "url": "http://b:1",
            "status": "dead",
            "models": {"state": "known", "names": ["m", "n"]},
        },
    ],
}


@pytest.fixture
def says(monkeypatch):
    """What the gateway answers."""

    def says(document):
        monkeypatch.setattr(status, "ask", lambda path, operation: document)

    return says


def test_people_see_a_line_and_a_table(says, capsys):
    says(HEALTHY)

    assert main(["status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok: 2 of 2 nodes healthy, process 7, version 1.0, ready",
        "name       url         status   models",
        "a          http://a:1  healthy  untried",
        "long-name  http://b:1  dead     known: m, n",
    ]


def test_scripts_see_the_document(says, capsys):
    says(HEALTHY)

    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == HEALTHY


def test_a_refused_reload_is_shown(says, capsys):
    says({**HEALTHY, "config": {"last_error": "nodes[0].url: is no URL"}, "details": []})

    main(["status"])

    assert "the last reload was refused: nodes[0].url: is no URL" in capsys.readouterr().out


def test_no_healthy_node_at_all_is_an_exit_status(says):
    says({**HEALTHY, "status": "error"})

    assert main(["status"]) == 1


def test_without_a_gateway_it_fails_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))

    assert main(["status"]) == 1
    assert capsys.readouterr().err.startswith("llmgw status: no gateway answers at ")
