"""`llmgw explain`, `drain` and `undrain`: what people read of what the gateway says."""

import io
import json

import pytest

from llmgw.cli import drain, explain, main, undrain
from llmgw.daemon.control import ControlFailed

FOUND = {
    "model": "m",
    "route": "/v1/chat/completions",
    "route_class": "http",
    "pool": "p",
    "key": "ci",
    "allowed": True,
    "plan": [
        {"assignment": "p/a", "provenance": "observed", "degraded": True, "probe": False},
        {"assignment": "p/b", "provenance": None, "untried": True},
    ],
    "beyond_plan": ["p/c"],
    "excluded": [{"assignment": "p/d", "reason": "circuit_open"}],
    "refusal": None,
    "standing": [
        {"assignment": "p/a", "listed_ago": 2.1, "load": 3.0, "circuit": {"state": "closed"}},
        {
            "assignment": "p/d",
            "listed_ago": None,
            "load": 0,
            "circuit": {"state": "open", "due_in": 9.0},
        },
    ],
}
WORDS = ["(it", "has", "just", "failed", "for", "this", "model)"]
NOBODY = {
    **FOUND,
    "plan": [],
    "beyond_plan": [],
    "excluded": [],
    "refusal": {"status": 404, "code": "model_not_found", "message": "no such model"},
}


@pytest.fixture
def gateway(monkeypatch):
    """What was asked, and what is answered: a document, or a failure."""

    class Gateway:
        answer: object = FOUND
        asked: dict[str, object]

        def ask(self, path, operation, **arguments):
            self.asked = {"op": operation, **arguments}
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    gateway = Gateway()
    for module in (explain, drain, undrain):
        monkeypatch.setattr(module, "ask", gateway.ask)
    return gateway


def test_the_plan_and_every_exclusion_are_lines(gateway, capsys):
    assert main(["explain", "--model", "m", "--key", "ci", "--stream"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert gateway.asked == {"op": "explain", "model": "m", "key": "ci", "stream": True}
    assert lines[0] == "m on /v1/chat/completions (http), pool p, key ci"
    assert [line.split() for line in lines[2:]] == [
        ["1", "p/a", "observed", "2s", "ago", "3", "closed", "degraded"],
        ["2", "p/b", "untried"],
        ["-", "p/c", "eligible,", "beyond", "plan_size"],
        ["x", "p/d", "never", "0", "open", "for", "9s", "excluded:", "circuit_open", *WORDS],
    ]


def test_a_key_that_does_not_count_is_not_told_as_if_it_did(gateway, capsys):
    gateway.answer = {**FOUND, "is_open": True}

    main(["explain", "--model", "m", "--key", "nobody"])

    first = capsys.readouterr().out.splitlines()[0]
    assert first == "m on /v1/chat/completions (http), pool p, open to all, whatever the key"


def test_for_scripts_it_is_an_object(gateway, capsys):
    assert main(["explain", "--model", "m", "--route", "/v1/embeddings", "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == FOUND
    assert gateway.asked["route"] == "/v1/embeddings"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(NOBODY, "refused: 404 model_not_found: no such model", id="nobody serves"),
        pytest.param({**NOBODY, "nearest": "mm"}, 'did you mean "mm"?', id="a misspelt model"),
        pytest.param(
            {**NOBODY, "excluded": [{"assignment": "p/d", "reason": "pinned"}]},
            "excluded: pinned\n",
            id="a reason that says all",
        ),
        pytest.param({**FOUND, "allowed": False}, "may not use this model", id="not allowed"),
    ],
)
def test_a_request_that_would_not_be_served_is_a_failure(gateway, capsys, answer, says):
    gateway.answer = answer

    assert main(["explain", "--model", "m"]) == 1
    assert says in capsys.readouterr().out


def test_a_key_can_be_given_where_no_list_of_processes_shows_it(gateway, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-secret\n"))

    main(["explain", "--model", "m", "--key", "-"])

    assert gateway.asked["key"] == "sk-secret"


@pytest.mark.parametrize(
    ("words", "asked", "says"),
    [
        pytest.param(
            ["drain", "n0", "--for", "1h"],
            {"op": "drain", "node": "n0", "for_seconds": 3600.0},
            "n0 gets no new work for 1h; what runs there goes on",
            id="for a while",
        ),
        pytest.param(
            ["drain", "n0"],
            {"op": "drain", "node": "n0", "for_seconds": None},
            "n0 gets no new work until `llmgw undrain`; what runs there goes on",
            id="until further notice",
        ),
        pytest.param(
            ["undrain", "n0"], {"op": "undrain", "node": "n0"}, "n0 works again", id="undrain"
        ),
    ],
)
def test_a_node_is_drained_and_let_in_again(gateway, capsys, words, asked, says):
    gateway.answer = {"was_drained": True}

    assert main(words) == 0

    assert gateway.asked == asked
    assert capsys.readouterr().out.strip() == says


@pytest.mark.parametrize("words", [["drain", "n0"], ["undrain", "n0"]])
def test_for_scripts_the_answer_is_shown_as_it_came(gateway, capsys, words):
    gateway.answer = {"node": "n0"}

    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"node": "n0"}


def test_a_node_that_was_not_drained_is_no_fault(gateway, capsys):
    gateway.answer = {"was_drained": False}

    assert main(["undrain", "n0"]) == 0
    assert "was not drained" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["explain", "--model", "m"], ["drain", "n0"], ["undrain", "n0"]]
)
def test_without_a_gateway_it_is_said_in_one_line(gateway, capsys, words):
    gateway.answer = ControlFailed("no gateway answers")

    assert main(words) == 1
    assert capsys.readouterr().err == f"llmgw {words[0]}: no gateway answers\n"


def test_a_time_that_is_none_is_refused(gateway, capsys):
    assert main(["drain", "n0", "--for", "long"]) == 1
    assert "--for" in capsys.readouterr().err
