import asyncio
import io
import json
import logging
import os

import pytest

from llmgw.core.config import BaseUrl, LogConfig
from llmgw.core.errors import FaultKind, Unavailable, UpstreamError
from llmgw.observe import logs

SECRET = "sk-CANARY-do-not-log"
log = logging.getLogger("llmgw.test")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    root, ours = logging.root, logging.getLogger("llmgw")
    before = (root.level, ours.level, logs._access.disabled, logging.raiseExceptions)
    flags = (logging.logThreads, logging.logProcesses, logging.logMultiprocessing)
    yield
    if logs._handler is not None:
        root.removeHandler(logs._handler)
        logs._handler = None
    root.setLevel(before[0])
    ours.setLevel(before[1])
    logs._access.disabled, logging.raiseExceptions = before[2:]
    logging.logThreads, logging.logProcesses, logging.logMultiprocessing = flags


@pytest.fixture
def lines():
    """The JSON lines logged so far, through a stream that is no terminal."""
    stream = io.StringIO()
    logs.setup(LogConfig(level="debug"), stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def raised(error, *, cause=None):
    try:
        raise error from cause
    except BaseException as caught:  # noqa: BLE001 - any kind is under test
        return caught


def test_a_line_is_one_object_with_the_fields_beside_the_message(lines):
    log.warning("node reports no models", extra={"node": "a", "fails": 2})

    (line,) = lines()
    assert line["message"] == "node reports no models"
    assert (line["level"], line["logger"]) == ("warning", "llmgw.test")
    assert (line["node"], line["fails"]) == ("a", 2)
    assert list(line)[:2] == ["time", "level"]


def test_the_time_is_utc_in_iso_8601_with_milliseconds(lines):
    record = logging.makeLogRecord(
        {"name": "llmgw", "msg": "x", "levelno": 20, "created": 1_700_000_000.0625}
    )

    logging.root.handle(record)

    assert lines()[0]["time"] == "2023-11-14T22:13:20.062Z"


@pytest.mark.parametrize("name", ["time", "level", "logger"])
def test_a_field_never_hides_one_of_ours(lines, name):
    log.info("config loaded", extra={name: "forged"})

    assert lines()[0][name] != "forged"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(BaseUrl("http", "10.0.0.5", 8000), "http://10.0.0.5:8000", id="url"),
        pytest.param(frozenset({"b", "a"}), ["a", "b"], id="set"),
        pytest.param(("a", 1), ["a", 1], id="tuple"),
        pytest.param(FaultKind.CUT, "cut", id="enum"),
        pytest.param(ValueError(SECRET), "ValueError", id="an exception without its text"),
        pytest.param(2**70, 2**70, id="an integer over 64 bits"),
        pytest.param("\ud800", "\ud800", id="a lone surrogate"),
    ],
)
def test_a_field_of_any_type_stays_readable(lines, value, shown):
    log.info("config loaded", extra={"value": value})

    assert lines()[0]["value"] == shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('a\r\n{"message":"forged"}', id="line break"),
        pytest.param("\x1b[2J\x9b2J\x7f", id="terminal sequences"),
        pytest.param("a\u2028b\u202ec", id="unicode line break and direction"),
        pytest.param("\U000e0001", id="invisible, outside the first plane"),
    ],
)
@pytest.mark.parametrize("style", ["json", "logfmt"])
def test_a_field_can_neither_forge_a_line_nor_drive_a_terminal(style, text):
    stream = io.StringIO()
    logs.setup(LogConfig(format=style), stream)

    log.info("no node serves requested model", extra={"nearest": text})

    assert stream.getvalue().removesuffix("\n").isprintable()
    if style == "json":
        assert json.loads(stream.getvalue())["nearest"] == text


def test_an_exception_shows_its_type_and_frames_but_not_its_text(lines):
    error = raised(ValueError(SECRET), cause=OSError(SECRET))

    log.error("task failed", exc_info=error, extra={"task": "health"})

    (line,) = lines()
    assert (line["error"], line["error_causes"]) == ("ValueError", ["OSError"])
    assert line["frames"][-1].startswith("observe/test_logs.py:")
    assert SECRET not in json.dumps(line)


def test_a_frame_of_ours_is_named_from_the_package_down(lines):
    try:
        logs.JsonFormatter().format(None)
    except AttributeError:
        log.exception("task failed")

    frames = lines()[0]["frames"]
    assert any(frame.startswith("llmgw/observe/logs.py:") for frame in frames)
    assert len(frames) <= logs.MAX_FRAMES


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        pytest.param(UpstreamError(FaultKind.CUT, "reset"), "cut: reset", id="upstream"),
        pytest.param(Unavailable("no healthy node"), "no healthy node", id="answer"),
    ],
)
def test_an_error_of_ours_keeps_its_text(lines, error, detail):
    log.error("task failed", exc_info=raised(error))

    assert lines()[0]["error_detail"] == detail


def test_a_chain_of_causes_is_followed_only_so_far():
    error = ValueError()
    for _ in range(20):
        error = raised(ValueError(), cause=error)

    assert len(logs.exception_fields(error)["error_causes"]) == logs.MAX_CAUSES


def test_a_suppressed_context_is_no_cause():
    error = ValueError()
    error.__context__ = OSError()
    assert logs.exception_fields(error)["error_causes"] == ["OSError"]

    error.__suppress_context__ = True

    assert "error_causes" not in logs.exception_fields(error)


def test_a_library_may_say_its_template_but_not_what_it_filled_in(lines):
    logging.getLogger("aiohttp.server").error("Error from %s", SECRET)
    logging.getLogger("asyncio").error(f"Task exception was never retrieved\n{SECRET}")

    assert [line["message"] for line in lines()] == [
        "Error from %s",
        "Task exception was never retrieved",
    ]


def test_a_library_is_heard_only_when_it_warns(lines):
    logging.getLogger("aiohttp.client").info("chatter")

    assert lines() == []


def test_our_own_messages_are_filled_in(lines):
    log.info("listening on %s", ":8000")

    assert lines()[0]["message"] == "listening on :8000"


@pytest.mark.parametrize(
    ("config", "stream", "is_json"),
    [
        pytest.param(LogConfig(), io.StringIO, True, id="auto, to a file"),
        pytest.param(LogConfig(), Terminal, False, id="auto, on a terminal"),
        pytest.param(LogConfig(format="json"), Terminal, True, id="json, on a terminal"),
        pytest.param(LogConfig(format="logfmt"), io.StringIO, False, id="logfmt, to a file"),
    ],
)
def test_the_format_follows_the_configuration_and_else_the_terminal(config, stream, is_json):
    out = stream()
    logs.setup(config, out)

    log.info("starting gateway")

    assert out.getvalue().startswith("{") is is_json


def test_logfmt_quotes_what_would_not_be_one_word():
    out = Terminal()
    logs.setup(LogConfig(), out)

    log.info("models discovered", extra={"node": "a", "names": ["x", "y"], "odd": 'a "b" \\c='})

    line = out.getvalue()
    assert 'level=info message="models discovered" logger=llmgw.test' in line
    assert 'node=a names=x,y odd="a \\"b\\" \\\\c="' in line


def test_a_second_setup_replaces_the_first():
    first, second = io.StringIO(), io.StringIO()
    logs.setup(LogConfig(), first)
    logs.setup(LogConfig(level="error"), second)

    log.warning("config loaded")
    log.error("task failed")

    assert first.getvalue() == ""
    assert len(second.getvalue().splitlines()) == 1


def test_the_journal_gets_a_priority_before_each_line(tmp_path, monkeypatch):
    with (tmp_path / "journal").open("w+") as stream:
        seen = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{seen.st_dev}:{seen.st_ino}")
        logs.setup(LogConfig(), stream)

        log.info("config loaded")
        log.error("task failed")
        log.log(25, "between two levels")
        stream.seek(0)

        assert [line[:4] for line in stream] == ["<6>{", "<3>{", "<6>{"]


def test_another_stream_than_the_journals_gets_none(tmp_path, monkeypatch):
    monkeypatch.setenv("JOURNAL_STREAM", "1:1")
    with (tmp_path / "file").open("w+") as stream:
        logs.setup(LogConfig(), stream)
        log.info("config loaded")
        stream.seek(0)

        assert stream.read(1) == "{"


def test_an_access_line_carries_its_fields(lines):
    logs.access(request_id="r1", status=200, model="m", node="a")

    (line,) = lines()
    assert (line["message"], line["logger"]) == ("request", "llmgw.access")
    assert (line["request_id"], line["status"], line["node"]) == ("r1", 200, "a")


async def test_access_lines_are_written_together_after_a_moment(lines, monkeypatch):
    monkeypatch.setattr(logs, "ACCESS_EVERY", 0.01)
    for number in range(3):
        logs.access(status=number)
    assert lines() == []

    await asyncio.sleep(0.05)

    assert [line["status"] for line in lines()] == [0, 1, 2]


async def test_many_access_lines_do_not_wait(lines):
    for number in range(logs.ACCESS_AT_MOST):
        logs.access(status=number)

    assert len(lines()) == logs.ACCESS_AT_MOST


async def test_other_lines_never_overtake_access_lines(lines):
    logs.access(status=200)

    logging.getLogger("llmgw").info("gateway stopped")

    assert [line["message"] for line in lines()] == ["request", "gateway stopped"]


async def test_access_lines_that_wait_are_written_when_the_log_is_set_up_anew(lines):
    logs.access(status=200)

    logs.setup(LogConfig(), io.StringIO())

    assert [line["message"] for line in lines()] == ["request"]


async def test_a_closed_pipe_costs_access_lines_and_nothing_else():
    stream = io.StringIO()
    logs.setup(LogConfig(), stream)
    stream.close()

    for number in range(logs.ACCESS_AT_MOST):
        logs.access(status=number)


@pytest.mark.parametrize(
    "config", [LogConfig(access=False), LogConfig(level="warning")], ids=["off", "level"]
)
def test_access_lines_can_be_turned_off(config):
    stream = io.StringIO()
    logs.setup(config, stream)

    logs.access(request_id="r1", status=200)

    assert stream.getvalue() == ""


def test_a_broken_pipe_stays_silent(capsys):
    stream = io.StringIO()
    logs.setup(LogConfig(), stream)
    stream.close()

    log.info("config loaded")

    assert capsys.readouterr().err == ""
