import io

import pytest

from llmgw.cli.narrator import Narrator


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Ascii(Terminal):
    encoding = "ascii"


def said(out):
    narrator = Narrator(out, {"COLUMNS": "40"})
    narrator.title("llmgw")
    narrator.heading("1. One answer")
    narrator.fact("node a", "http://127.0.0.1:1")
    narrator.commands([("curl http://127.0.0.1:1", "ask")])
    narrator.passed("node a answered")
    narrator.failed("node a did not")
    return out.getvalue()


def test_a_pipe_gets_the_words_without_a_colour():
    text = said(io.StringIO())

    assert "\x1b" not in text
    assert "   node a    http://127.0.0.1:1\n" in text
    assert "   # ask\n   curl http://127.0.0.1:1\n" in text
    assert "   ok: node a answered\n   failed: node a did not\n" in text


def test_a_terminal_gets_colours():
    text = said(Terminal())

    assert "\x1b[1mllmgw\x1b[0m" in text
    assert "✓" in text


@pytest.mark.parametrize(
    "environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"]
)
def test_colours_can_be_declined(environment):
    out = Terminal()

    Narrator(out, environment).passed("node a answered")

    assert out.getvalue() == "   ok: node a answered\n"


def test_an_empty_no_color_declines_nothing():
    out = Terminal()

    Narrator(out, {"NO_COLOR": ""}).title("llmgw")

    assert "\x1b" in out.getvalue()


def test_a_terminal_without_the_signs_gets_others():
    out = Ascii()

    Narrator(out, {}).passed("node a answered")

    assert out.getvalue().isascii()


def test_words_go_out_at_once_and_are_wrapped(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    narrator = Narrator(out, {})

    narrator.word("Hello ")
    assert out.getvalue() == "   | Hello "
    for word in ("", "from ", "somewhere ", "else "):
        narrator.word(word)
    narrator.end_words()
    narrator.end_words()

    assert out.getvalue() == "   | Hello from \n   | somewhere else \n"
