"""`llmgw status` against a control socket; against a gateway: `test_serve.py`."""

import json

import pytest

from llmgw.cli import main, status
from llmgw.daemon.control import ControlFailed

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


def test_a_drained_node_stands_out(says, capsys):
    says({**HEALTHY, "details": [{**HEALTHY["details"][0], "draining": True}]})

    assert main(["status"]) == 0
    assert "healthy, draining" in capsys.readouterr().out.splitlines()[2]


def test_a_listing_that_fails_says_why(says, capsys):
    listing = {"state": "degraded", "names": ["m"], "last_error": "timed out"}
    says({**HEALTHY, "details": [{**HEALTHY["details"][0], "models": listing}]})

    assert main(["status"]) == 0
    assert "degraded: m (timed out)" in capsys.readouterr().out.splitlines()[2]


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


@pytest.fixture
def looks(monkeypatch):
    """Three looks, then Ctrl-C; the gateway is away at the second."""
    answers = [HEALTHY, ControlFailed("no gateway answers"), {**HEALTHY, "healthy": 1}]
    pauses = []

    def look(path, operation):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(seconds):
        pauses.append(seconds)
        if not answers:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "ask", look)
    monkeypatch.setattr(status.time, "sleep", sleep)
    return pauses


def test_a_watch_goes_on_while_the_gateway_is_away_and_ends_with_ctrl_c(looks, capsys):
    assert main(["status", "--watch"]) == 0

    lines = capsys.readouterr().out.splitlines()
    heads = [line.split(",")[0] for line in lines if "nodes healthy" in line or "away" in line]
    assert heads == ["ok: 2 of 2 nodes healthy", "ok: 1 of 2 nodes healthy"]
    assert "llmgw status: no gateway answers" in lines
    assert looks == [2.0] * 3


def test_a_terminal_is_cleared_before_each_look(looks, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    main(["status", "--watch", "0.5"])

    assert capsys.readouterr().out.count(status.CLEAR) == 3
    assert looks == [0.5] * 3


def test_scripts_see_one_object_a_line(looks, capsys):
    main(["status", "--watch", "--json"])

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one.get("healthy", one.get("error")) for one in found] == [2, "no gateway answers", 1]


@pytest.mark.parametrize("pause", ["0", "-1", "nan", "inf", "soon"])
def test_a_pause_that_is_none_is_refused(pause, capsys):
    with pytest.raises(SystemExit) as refused:
        main(["status", f"--watch={pause}"])

    assert refused.value.code == 2
    assert "--watch" in capsys.readouterr().err
